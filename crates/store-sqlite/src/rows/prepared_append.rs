//! What an append needs that does not depend on the database: terms, hashes, compressed bytes. It is computed before the call
//! is queued, so the write thread only does what needs the transaction, and no other writer waits for it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use contexture_ir::{ContentHash, MessageId};
use contexture_store::{AppendRequest, Error, NewItem, rules};

use crate::rows::codec;

/// Size of an append's items, in bytes, above which they are prepared on the blocking pool.
const LARGE_BYTES: usize = 64 << 10;

/// An append with what was computed for each of its items.
pub(crate) struct PreparedAppend {
    pub(crate) request: AppendRequest,
    /// One for each of the request's items.
    pub(crate) items: Vec<PreparedItem>,
    /// The distinct message ids of the items.
    pub(crate) message_ids: BTreeSet<MessageId>,
}

/// What a row holds of an item besides its position.
pub(crate) struct PreparedItem {
    /// The search terms, separated by spaces.
    pub(crate) terms: String,
    pub(crate) content_hash: ContentHash,
    pub(crate) codec: u8,
    /// The compressed JSON; `None` where it is stored as it is.
    compressed: Option<Vec<u8>>,
}

impl PreparedItem {
    fn new(item: &NewItem) -> Self {
        let plain = item.json.as_bytes();
        let (codec, stored) = codec::encode_bytes(plain);
        Self {
            terms: rules::index_terms(&rules::searchable_text(&item.json)),
            // Of the plain bytes: replay detection compares it with what a caller sends.
            content_hash: ContentHash::of(plain),
            codec,
            compressed: match stored {
                Cow::Borrowed(_) => None,
                Cow::Owned(compressed) => Some(compressed),
            },
        }
    }

    /// Returns the bytes to store of the item that this was made from.
    pub(crate) fn stored_bytes<'a>(&'a self, item: &'a NewItem) -> &'a [u8] {
        match &self.compressed {
            Some(compressed) => compressed,
            None => item.json.as_bytes(),
        }
    }
}

/// Prepares an append; a large one on the blocking pool.
pub(crate) async fn prepare_append(request: AppendRequest) -> Result<PreparedAppend, Error> {
    let bytes: usize = request.items.iter().map(|item| item.json.len()).sum();
    let prepare = move || {
        let message_ids = request.items.iter();
        let message_ids = message_ids.filter_map(|item| item.message_id.clone());
        PreparedAppend {
            items: request.items.iter().map(PreparedItem::new).collect(),
            message_ids: message_ids.collect(),
            request,
        }
    };
    if bytes <= LARGE_BYTES {
        return Ok(prepare());
    }
    // Nothing has been written yet, so the call may be repeated.
    let lost = |source| Error::OutcomeUnknown {
        source: Box::new(source),
    };
    tokio::task::spawn_blocking(prepare).await.map_err(lost)
}
