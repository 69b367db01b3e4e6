//! The trait, what it is asked and what it answers.

use std::fmt;

use async_trait::async_trait;
use contexture_ir::ContentHash;
use contexture_wire::Format;

use crate::error::ModelError;

/// Something that answers payloads: a provider behind HTTP, a script, a recording.
///
/// A call may be dropped at any time; what it cost until then is lost. An implementation keeps no memory
/// of earlier calls that changes what it answers, scripts and recordings apart.
#[async_trait]
pub trait Model: fmt::Debug + Send + Sync {
    /// Answers a payload.
    ///
    /// # Errors
    /// [`ModelError`]; [`ModelError::is_retryable`] says whether the same request may succeed later.
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError>;
}

/// A payload, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest {
    /// The format of the payload, and of the answer.
    pub format: Format,
    /// The model's name as the provider knows it.
    pub model: String,
    /// The request's body.
    pub payload: String,
}

impl ModelRequest {
    /// The hash of the payload's bytes.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.payload.as_bytes())
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelResponse {
    /// The response's body, in the format of the request.
    pub body: String,
}

impl ModelResponse {
    /// An answer with this body.
    #[must_use]
    pub fn new(body: impl Into<String>) -> Self {
        Self { body: body.into() }
    }
}
