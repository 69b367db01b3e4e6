//! Why a document could not be read.

use contexture_ir::Cancelled;

use crate::model::format::Format;
use crate::model::repair_rules::ToolRefusal;

/// Why a document could not be read. What merely cannot be expressed is not an error but a
/// [`crate::Loss`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The text is not JSON.
    #[error("not JSON, line {line} column {column}")]
    NotJson {
        /// The line of the error, counted from 1.
        line: usize,
        /// The column of the error in bytes, counted from 1; 0 if the text ends right after a line break.
        column: usize,
        /// The error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// JSON, but not a request, response or message array of the format.
    #[error("not a document of format {format}: expected {expected}")]
    WrongShape {
        /// The format that the document was read as.
        format: Format,
        /// The documents that would have been accepted.
        expected: &'static str,
    },
    /// A value inside the document is wrong.
    #[error("{format}: {source}")]
    Invalid {
        /// The format of the document.
        format: Format,
        /// The error, with the path of the value.
        source: contexture_ir::Error,
    },
    /// The tools cannot be offered together.
    #[error(transparent)]
    Tools(#[from] ToolRefusal),
    /// UI messages that the AI SDK's validation would refuse.
    #[error("ui message: `{path}`: {what}")]
    InvalidUi {
        /// The path of the value, from the array of messages: `[3].parts[0].state`.
        path: String,
        /// What is wrong and what was expected.
        what: String,
    },
    /// Reading was called off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}
