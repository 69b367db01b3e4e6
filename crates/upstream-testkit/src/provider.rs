//! The decision what to answer, and the request it is made on.

use bytes::Bytes;
use serde_json::Value;

use crate::answer::UpstreamResponse;

/// What an upstream answers.
pub trait Provider: Send + Sync + 'static {
    /// The answer to a request.
    fn respond_to(&self, request: &Received) -> UpstreamResponse;
}

impl<F: Fn(&Received) -> UpstreamResponse + Send + Sync + 'static> Provider for F {
    fn respond_to(&self, request: &Received) -> UpstreamResponse {
        self(request)
    }
}

/// A request as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The method as written.
    pub method: String,
    /// What was asked for: path and query as written.
    pub target: String,
    /// The headers, in their order, with names as written.
    pub headers: Vec<(String, Bytes)>,
    /// The body, taken out of its chunks.
    pub body: Bytes,
}

impl Received {
    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The first header of that name, capitals apart, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
