//! Why a document could not be read.

use crate::model::format::Format;

/// Why a document could not be read. What merely cannot be expressed is not an error but a
/// [`crate::Loss`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The text is not JSON.
    #[error("not JSON, line {line} column {column}")]
    NotJson {
        /// One-based line.
        line: usize,
        /// One-based column, in bytes.
        column: usize,
        /// The parser's own account.
        #[source]
        source: serde_json::Error,
    },
    /// JSON, but not a request, response or message array of the format.
    #[error("not a document of format {format}: expected {expected}")]
    WrongShape {
        /// The format it was to be.
        format: Format,
        /// What would have been accepted.
        expected: &'static str,
    },
    /// A value inside the document is wrong.
    #[error("{format}: {source}")]
    Invalid {
        /// The format.
        format: Format,
        /// Where and what.
        source: contexture_ir::Error,
    },
    /// UI messages that the AI SDK's validation would refuse.
    #[error("ui message: `{path}`: {what}")]
    InvalidUi {
        /// Where, from the array: `[3].parts[0].state`.
        path: String,
        /// What is wrong and what was expected.
        what: String,
    },
}
