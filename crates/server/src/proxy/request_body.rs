//! A request's body: its bytes as they came, and its text, decompressed once.
//!
//! The bytes that came are the bytes that go out, unless a policy changes them. A body is decompressed on the request's way
//! where it must be read before it is sent; otherwise beside it, as far as the store queue has room.

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

/// A body, with the headers that name its compression.
#[derive(Debug)]
pub(crate) struct RequestBody {
    headers: HeaderMap,
    bytes: Bytes,
    /// Longest decompressed body that is read, in bytes.
    max_bytes: usize,
    decompressed: OnceCell<Result<Bytes, UnreadableBody>>,
}

/// Why a body cannot be read.
#[derive(Clone, Debug, Error)]
pub(crate) enum UnreadableBody {
    #[error("more waits to be stored than `server.limits.store_queue_bytes` has room for")]
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

    /// Returns the bytes as they came, which may be compressed.
    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn is_json(&self) -> bool {
        headers::is_json(&self.headers)
    }

    /// Returns its length in bytes: decompressed if it was, else as it came.
    pub(crate) fn known_length(&self) -> usize {
        let decompressed = self
            .decompressed
            .get()
            .and_then(|known| known.as_ref().ok());
        decompressed.unwrap_or(&self.bytes).len()
    }

    /// Decompresses the body whatever room that takes: for a body that must be read before it is sent.
    pub(crate) async fn decompress(&self) -> Result<&Bytes, &UnreadableBody> {
        let decompressed = || self.decompress_bounded(|_| true);
        self.decompressed.get_or_init(decompressed).await.as_ref()
    }

    /// Returns its text; empty if it is not UTF-8, which no request to a model is.
    pub(crate) async fn read_text(&self) -> &str {
        let bytes = self.decompress().await;
        let text = bytes.ok().and_then(|bytes| str::from_utf8(bytes).ok());
        text.unwrap_or_default()
    }

    /// Decompresses the body if the permit's queue has room for it.
    pub(crate) async fn decompress_within(
        &self,
        room: Option<&mut QueuePermit>,
    ) -> Result<Bytes, UnreadableBody> {
        let room = room.ok_or(UnreadableBody::NoRoom)?;
        match self.decompressed.get() {
            // Decompressed before the permit was acquired, which was sized by that length.
            Some(known) => known.clone(),
            None => self.decompress_bounded(|length| room.resize(length)).await,
        }
    }

    async fn decompress_bounded(
        &self,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> Result<Bytes, UnreadableBody> {
        let max_bytes = self.max_bytes;
        let mut is_full = false;
        // Checked while it is decompressed: a small body may expand without bound.
        let should_continue = |length| {
            is_full = !has_room(length);
            !is_full && length <= max_bytes
        };
        let decompressed =
            decompress_while(&self.headers, self.bytes.clone(), should_continue).await;
        match decompressed {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) if is_full => Err(UnreadableBody::NoRoom),
            Ok(None) => Err(UnreadableBody::TooLong { most: max_bytes }),
            Err(error) => Err(UnreadableBody::Broken(error.into())),
        }
    }

    /// Replaces the body by a text.
    pub(crate) fn replace_text(&mut self, text: String) {
        // The replaced text is not compressed, and the old decompressed copy is stale.
        self.headers.remove(CONTENT_ENCODING);
        self.bytes = text.into();
        self.decompressed = OnceCell::new();
    }
}
