//! A document before and after a conversion: its kind, its items, its losses.

use contexture_ir::Transcript;

use crate::model::loss::Loss;

/// The kinds of documents a format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// The body of a request: history, tools, options.
    Request,
    /// The body of a response: one model's answer.
    Response,
    /// A bare array of messages (or items, or contents).
    Messages,
}

impl DocumentKind {
    /// The lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Messages => "messages",
        }
    }
}

/// A document that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// What kind of document it was.
    pub kind: DocumentKind,
    /// Its items, instructions, tools and options.
    pub transcript: Transcript,
    /// What the items cannot express.
    pub losses: Vec<Loss>,
}

/// A document that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The JSON text.
    pub json: String,
    /// What the format cannot express.
    pub losses: Vec<Loss>,
}
