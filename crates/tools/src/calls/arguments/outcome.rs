//! The result of reading arguments: an object with the issues of its text, or an error.

use contexture_ir::Raw;
use serde::{Deserialize, Serialize};

/// The deepest nesting of arguments.
pub(super) const DEPTH: usize = 100;
/// The most issues reported; a document with more faults than that is refused.
pub(super) const ISSUES: usize = 1_000;

/// Arguments that could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    /// A JSON object: what the model wrote if that was one, else mended.
    pub raw: Raw,
    /// What was changed or is odd, in the order of the text; empty if nothing.
    pub issues: Vec<Issue>,
}

impl Arguments {
    /// Arguments of a call without any.
    #[must_use]
    pub fn none() -> Self {
        Self {
            // Not derived: a default of `null` would be no object.
            raw: empty_object(),
            issues: Vec::new(),
        }
    }

    /// Whether the arguments are complete: nothing suggests that the text was cut off.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.issues.iter().any(|issue| issue.kind.is_truncation())
    }

    /// As a value. Integers beyond 64 bits are rounded, and of a repeated key the last counts; [`Self::raw`] has them all.
    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(self.raw.get())
    }
}

/// Something odd in arguments, and what was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Where in the text, in bytes.
    #[serde(rename = "at")]
    pub offset: usize,
    /// What it is.
    pub kind: IssueKind,
}

/// What was odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IssueKind {
    /// There was no text, or `null`: taken as no arguments.
    Empty,
    /// The object was a string within JSON: unpacked.
    DoublyEncoded,
    /// The text stood in a Markdown code fence, which went.
    CodeFence,
    /// A key stands twice; both are kept, most readers take the last.
    RepeatedKey,
    /// A comma with nothing behind it went.
    TrailingComma,
    /// A comma was missing.
    MissingComma,
    /// A key had no quotes, or single ones.
    UnquotedKey,
    /// A string had single quotes.
    SingleQuotes,
    /// A word of Python or JavaScript stood for `true`, `false` or `null`.
    ForeignLiteral,
    /// A line break, tab or other control character stood in a string unescaped.
    ControlCharacter,
    /// A backslash stood before something that needs none: before a single quote it went, elsewhere it is a backslash now.
    BadEscape,
    /// White space that JSON does not know, or a byte order mark, went.
    ForeignSpace,
    /// A closing bracket too many went.
    ExtraBracket,
    /// The text ends within a string, which was closed: its end may be missing.
    CutString,
    /// The text ends with a number, which may have had more digits.
    CutNumber,
    /// The text ends within a key or before its value: the key went.
    CutMember,
    /// The text ends before brackets are closed: they were.
    CutBrackets,
}

impl IssueKind {
    /// Whether it suggests that the text was cut off.
    #[must_use]
    pub(crate) fn is_truncation(self) -> bool {
        matches!(
            self,
            Self::CutString | Self::CutNumber | Self::CutMember | Self::CutBrackets
        )
    }
}

/// Why arguments cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// The text is not JSON and can be mended in no one way.
    #[error("arguments, byte {offset}: expected {expected}, found {found:?}")]
    Unreadable {
        /// Byte offset in the text.
        offset: usize,
        /// What may stand there.
        expected: &'static str,
        /// What stands there, cut to 20 characters.
        found: String,
    },
    /// The text is a value, but no object.
    #[error("the arguments are to be an object, found {found:?}")]
    NotAnObject {
        /// The value, cut to 60 characters.
        found: String,
    },
    /// The text nests too deep.
    #[error("the arguments nest deeper than {DEPTH} levels")]
    TooDeep,
    /// The text has too many faults to be trusted.
    #[error("the arguments have more than {ISSUES} faults")]
    TooManyFaults,
}

/// The object without members.
pub(super) fn empty_object() -> Raw {
    Raw::parse("{}").unwrap_or_else(|_| Raw::null())
}
