//! A model call's request and response: bodies in a provider's format.

use contexture_wire::Format;

/// The request of a call: a payload and the model it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest {
    /// The format of the payload, and of the answer.
    pub format: Format,
    /// The model's name as the provider knows it.
    pub model: String,
    /// The request's body.
    pub payload: String,
}

/// The response of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelResponse {
    /// The response's body, in the format of the request.
    pub body: String,
    /// The provider's id of the call, for its support; `None` where it gives none.
    pub request_id: Option<String>,
}

impl ModelResponse {
    /// A response with this body and no id.
    #[must_use]
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            request_id: None,
        }
    }
}
