//! A request's body: its bytes as they came, and its text, decompressed once.
//!
//! The bytes that came are the bytes that go out, unless a policy changes them. A body is decompressed on the request's way
//! where it must be read before it is sent; otherwise beside it, as far as there is memory for it.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use contexture::Owner;
use contexture::models_http::decompress_while;
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::http::body::read_whole_body;
use crate::problem::Problem;
use crate::proxy::headers;
use crate::proxy::refusal::ProxyRefusal;
use crate::state::App;
use crate::state::body_memory::{BodyMemory, MemoryError, MemoryLease};
use crate::state::work_pool::HEAVY_BYTES;

/// A body, with the headers that name its compression.
#[derive(Debug)]
pub(crate) struct RequestBody {
    headers: HeaderMap,
    bytes: Bytes,
    /// Longest decompressed body that is read, in bytes.
    max_bytes: usize,
    memory: BodyMemory,
    owner: Owner,
    decompressed: OnceCell<Result<Bytes, UnreadableBody>>,
}

/// Why a body cannot be read.
#[derive(Clone, Debug, Error)]
pub(crate) enum UnreadableBody {
    #[error(transparent)]
    NoMemory(MemoryError),
    #[error("it is longer than {most} bytes when unpacked")]
    TooLong { most: usize },
    #[error(transparent)]
    Broken(Arc<io::Error>),
}

impl RequestBody {
    /// Reads all of the body of an owner's request: matching needs all of it, and an answer may not begin before it has come.
    pub(crate) async fn read(
        app: &App,
        owner: &Owner,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Self, ProxyRefusal> {
        let (memory, limits) = (app.body_memory(), &app.config().server.limits);
        let bytes = read_whole_body(body, memory.lease(owner), limits).await;
        Ok(Self {
            headers,
            bytes: bytes.map_err(Problem::from)?,
            max_bytes: limits.body_bytes,
            memory: memory.clone(),
            owner: owner.clone(),
            decompressed: OnceCell::new(),
        })
    }

    /// Returns a lease of memory for work on the body.
    pub(crate) fn lease(&self) -> MemoryLease {
        self.memory.lease(&self.owner)
    }

    /// Whether work on it takes so long that it must not be done on the threads that pass answers on.
    pub(crate) fn is_heavy(&self) -> bool {
        // A compressed body may be a thousand times as long.
        self.bytes.len() > HEAVY_BYTES || self.is_compressed()
    }

    /// Returns the bytes as they came, which may be compressed.
    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn is_json(&self) -> bool {
        headers::is_json(&self.headers)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.headers.contains_key(CONTENT_ENCODING)
    }

    /// Returns its length in bytes: decompressed if it was, else as it came.
    pub(crate) fn known_length(&self) -> usize {
        let decompressed = self
            .decompressed
            .get()
            .and_then(|known| known.as_ref().ok());
        decompressed.unwrap_or(&self.bytes).len()
    }

    /// Decompresses the body, once.
    pub(crate) async fn decompress(&self) -> Result<&Bytes, &UnreadableBody> {
        let decompressed = || self.decompress_bounded();
        self.decompressed.get_or_init(decompressed).await.as_ref()
    }

    /// Returns its text; empty if it is not UTF-8 or cannot be decompressed, which no request to a model is.
    ///
    /// # Errors
    /// There is no memory for it: then nobody can say what it is.
    pub(crate) async fn read_text(&self) -> Result<&str, MemoryError> {
        match self.decompress().await {
            Ok(bytes) => Ok(str::from_utf8(bytes).unwrap_or_default()),
            Err(UnreadableBody::NoMemory(error)) => Err(*error),
            Err(_) => Ok(""),
        }
    }

    /// Returns the model that it names. A duplicate member is an error: hosts differ in which of them they read.
    pub(crate) async fn read_model(&self) -> Result<Option<String>, UnreadableModel> {
        #[derive(Deserialize)]
        struct Body {
            model: Option<String>,
        }
        let text = self.read_text().await.map_err(UnreadableModel::NoMemory)?;
        let body: Body = serde_json::from_str(text).map_err(|_| UnreadableModel::NotNamed)?;
        Ok(body.model)
    }

    async fn decompress_bounded(&self) -> Result<Bytes, UnreadableBody> {
        if !self.is_compressed() {
            return Ok(self.bytes.clone());
        }
        let (max_bytes, mut lease) = (self.max_bytes, self.lease());
        let mut no_memory = None;
        // Checked while it is decompressed: a small body may expand without bound.
        let should_continue = |length| {
            no_memory = lease.try_grow_to(length).err();
            no_memory.is_none() && length <= max_bytes
        };
        let decompressed =
            decompress_while(&self.headers, self.bytes.clone(), should_continue).await;
        match decompressed {
            Ok(Some(bytes)) => Ok(lease.attach_to_bytes(bytes)),
            Ok(None) => Err(match no_memory {
                Some(error) => UnreadableBody::NoMemory(error),
                None => UnreadableBody::TooLong { most: max_bytes },
            }),
            Err(error) => Err(UnreadableBody::Broken(error.into())),
        }
    }

    /// Returns a text to send in its place, which holds the memory that it takes.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn leased_text(&self, text: String) -> Result<Bytes, MemoryError> {
        let mut lease = self.lease();
        lease.try_grow_to(text.len())?;
        Ok(lease.attach_to_bytes(text.into()))
    }

    /// Returns the same body with another text.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn with_text(&self, text: String) -> Result<Self, MemoryError> {
        let bytes = self.leased_text(text)?;
        let mut headers = self.headers.clone();
        // The new text is not compressed.
        headers.remove(CONTENT_ENCODING);
        Ok(Self {
            headers,
            bytes,
            max_bytes: self.max_bytes,
            memory: self.memory.clone(),
            owner: self.owner.clone(),
            decompressed: OnceCell::new(),
        })
    }
}

/// A body does not say which model it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnreadableModel {
    /// It names none that can be read.
    NotNamed,
    /// There is no memory to read it.
    NoMemory(MemoryError),
}
