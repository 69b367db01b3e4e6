//! What a model is asked and what it answers: bodies in a provider's format.

use contexture_ir::ContentHash;
use contexture_wire::Format;

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
    pub fn payload_hash(&self) -> ContentHash {
        ContentHash::of(self.payload.as_bytes())
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelResponse {
    /// The response's body, in the format of the request.
    pub body: String,
    /// The provider's id of the call, for its support; `None` where it gives none.
    pub request_id: Option<String>,
}

impl ModelResponse {
    /// An answer with this body.
    #[must_use]
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            request_id: None,
        }
    }
}
