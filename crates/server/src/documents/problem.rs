//! Errors as they are told over HTTP.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// An error as it is told over HTTP: problem details (RFC 9457), `application/problem+json`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProblemDocument {
    /// `urn:contexture:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The code in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What happened, to what.
    detail: String,
    /// A stable word for programs.
    code: &'static str,
    /// Whether the same request, unchanged, may succeed later.
    retryable: bool,
    /// More for programs, by code: `expected` and `actual` of `head_moved`, say.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    more: Map<String, Value>,
}

impl ProblemDocument {
    pub(crate) fn new(code: &'static str, status: u16, detail: String, retryable: bool) -> Self {
        let mut title = code.replace('_', " ");
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self {
            kind: format!("urn:contexture:problem:{code}"),
            title,
            status,
            detail,
            code,
            retryable,
            more: Map::new(),
        }
    }

    pub(crate) fn with_members(self, more: Map<String, Value>) -> Self {
        Self { more, ..self }
    }
}
