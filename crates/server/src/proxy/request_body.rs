//! A request's body: as it came, and what it says, unpacked once.
//!
//! What came is what goes out, unless something of it is changed. It is unpacked where it must be read before it is sent,
//! or else beside its way, as far as there is room.

use std::io;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use contexture::models_http::decompress_while;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::proxy::headers;
use crate::state::store_queue::QueuePermit;

/// A body, with the headers that say how it is packed.
#[derive(Debug)]
pub(crate) struct RequestBody {
    headers: HeaderMap,
    bytes: Bytes,
    /// The longest that is read, unpacked.
    max_bytes: usize,
    decompressed: OnceCell<Result<Bytes, UnreadableBody>>,
}

/// Why nobody knows what a body says.
#[derive(Clone, Debug, Error)]
pub(crate) enum UnreadableBody {
    #[error("more waits to be stored than `server.limits.behind_bytes` has room for")]
    NoRoom,
    #[error("it is longer than {most} bytes when unpacked")]
    TooLong { most: usize },
    #[error(transparent)]
    Broken(Arc<io::Error>),
}

impl RequestBody {
    pub(crate) fn new(headers: HeaderMap, bytes: Bytes, most: usize) -> Self {
        Self {
            headers,
            bytes,
            max_bytes: most,
            decompressed: OnceCell::new(),
        }
    }

    /// As it came, packed perhaps.
    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn is_json(&self) -> bool {
        headers::is_json(&self.headers)
    }

    /// How long it is, as far as that is known: unpacked, if it was.
    pub(crate) fn known_length(&self) -> usize {
        let unpacked = self
            .decompressed
            .get()
            .and_then(|known| known.as_ref().ok());
        unpacked.unwrap_or(&self.bytes).len()
    }

    /// What it says, whatever room that takes: for what must be read before it is sent.
    pub(crate) async fn decompress(&self) -> Result<&Bytes, &UnreadableBody> {
        let unpacked = || self.decompress_bounded(|_| true);
        self.decompressed.get_or_init(unpacked).await.as_ref()
    }

    /// Its text. What is no text is no request either, and empty here.
    pub(crate) async fn read_text(&self) -> &str {
        let bytes = self.decompress().await;
        let text = bytes.ok().and_then(|bytes| str::from_utf8(bytes).ok());
        text.unwrap_or_default()
    }

    /// What it says, if that finds room.
    pub(crate) async fn decompress_within(
        &self,
        room: Option<&mut QueuePermit>,
    ) -> Result<Bytes, UnreadableBody> {
        let room = room.ok_or(UnreadableBody::NoRoom)?;
        match self.decompressed.get() {
            Some(known) => known.clone(),
            None => self.decompress_bounded(|length| room.resize(length)).await,
        }
    }

    async fn decompress_bounded(
        &self,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> Result<Bytes, UnreadableBody> {
        let most = self.max_bytes;
        let mut is_full = false;
        let goes_on = |length| {
            is_full = !has_room(length);
            !is_full && length <= most
        };
        let unpacked = decompress_while(&self.headers, self.bytes.clone(), goes_on).await;
        match unpacked {
            Ok(Some(whole)) => Ok(whole),
            Ok(None) if is_full => Err(UnreadableBody::NoRoom),
            Ok(None) => Err(UnreadableBody::TooLong { most }),
            Err(error) => Err(UnreadableBody::Broken(error.into())),
        }
    }

    /// Puts another text in its place.
    pub(crate) fn replace_text(&mut self, text: String) {
        self.headers.remove(CONTENT_ENCODING);
        self.bytes = text.into();
        self.decompressed = OnceCell::new();
    }
}
