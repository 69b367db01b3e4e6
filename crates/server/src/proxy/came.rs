//! A request's body: as it came, and what it says, unpacked once.
//!
//! What came is what goes out, unless something of it is changed. It is unpacked where it must be read before it is sent,
//! or else beside its way, as far as there is room.

use std::io;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use contexture::client::unpacked_while;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::proxy::behind::Room;
use crate::proxy::headers;

/// A body, with the headers that say how it is packed.
#[derive(Debug)]
pub(crate) struct Came {
    headers: HeaderMap,
    bytes: Bytes,
    /// The longest that is read, unpacked.
    most: usize,
    unpacked: OnceCell<Result<Bytes, Unread>>,
}

/// Why nobody knows what a body says.
#[derive(Clone, Debug, Error)]
pub(crate) enum Unread {
    #[error("more waits to be stored than `server.limits.behind_bytes` has room for")]
    NoRoom,
    #[error("it is longer than {most} bytes when unpacked")]
    TooLong { most: usize },
    #[error(transparent)]
    Broken(Arc<io::Error>),
}

impl Came {
    pub(crate) fn new(headers: HeaderMap, bytes: Bytes, most: usize) -> Self {
        Self {
            headers,
            bytes,
            most,
            unpacked: OnceCell::new(),
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
    pub(crate) fn length(&self) -> usize {
        let unpacked = self.unpacked.get().and_then(|known| known.as_ref().ok());
        unpacked.unwrap_or(&self.bytes).len()
    }

    /// What it says, whatever room that takes: for what must be read before it is sent.
    pub(crate) async fn unpacked(&self) -> Result<&Bytes, &Unread> {
        let unpacked = || self.unpack(|_| true);
        self.unpacked.get_or_init(unpacked).await.as_ref()
    }

    /// Its text. What is no text is no request either, and empty here.
    pub(crate) async fn text(&self) -> &str {
        let bytes = self.unpacked().await;
        let text = bytes.ok().and_then(|bytes| str::from_utf8(bytes).ok());
        text.unwrap_or_default()
    }

    /// What it says, if that finds room.
    pub(crate) async fn unpacked_in(&self, room: Option<&mut Room>) -> Result<Bytes, Unread> {
        let room = room.ok_or(Unread::NoRoom)?;
        match self.unpacked.get() {
            Some(known) => known.clone(),
            None => self.unpack(|length| room.grow(length)).await,
        }
    }

    async fn unpack(&self, mut has_room: impl FnMut(usize) -> bool) -> Result<Bytes, Unread> {
        let most = self.most;
        let mut is_full = false;
        let goes_on = |length| {
            is_full = !has_room(length);
            !is_full && length <= most
        };
        let unpacked = unpacked_while(&self.headers, self.bytes.clone(), goes_on).await;
        match unpacked {
            Ok(Some(whole)) => Ok(whole),
            Ok(None) if is_full => Err(Unread::NoRoom),
            Ok(None) => Err(Unread::TooLong { most }),
            Err(error) => Err(Unread::Broken(error.into())),
        }
    }

    /// Puts another text in its place.
    pub(crate) fn replace(&mut self, text: String) {
        self.headers.remove(CONTENT_ENCODING);
        self.bytes = text.into();
        self.unpacked = OnceCell::new();
    }
}
