//! The HTTP API as pages use it: through whoever serves them, on behalf of the reader.

use serde_json::Value;

use crate::document::Document;

/// The API, called with the reader's key.
///
/// Paths begin with `/api/v1` and are encoded already.
pub trait Api: Sync {
    /// Reads a document.
    ///
    /// # Errors
    /// The API refuses; its problem says why.
    fn get(&self, path: &str) -> impl Future<Output = Result<Document, ApiError>> + Send;

    /// Changes something, or asks what takes a body.
    ///
    /// # Errors
    /// As those of [`Api::get`].
    fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> impl Future<Output = Result<Document, ApiError>> + Send;
}

/// A method of a request with which the API is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Makes something, or asks with a body.
    Post,
    /// Sets something to a value.
    Put,
    /// Takes something away.
    Delete,
}

impl Method {
    /// Returns the method's name in HTTP.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Why the API refused, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status of the refusal.
    pub status: u16,
    /// The problem's code, such as `not_found`.
    pub code: String,
    /// What is wrong, in a sentence.
    pub detail: String,
}

impl ApiError {
    /// Reads a problem document; without one only the status is known.
    #[must_use]
    pub fn from_problem(status: u16, problem: Option<&Document>) -> Self {
        let said = |name| {
            problem
                .and_then(|problem| problem.view().text_of(name))
                .map(str::to_owned)
        };
        Self {
            status,
            code: said("code").unwrap_or_else(|| "internal".to_owned()),
            detail: said("detail")
                .unwrap_or_else(|| "the server failed; its log says how".to_owned()),
        }
    }
}
