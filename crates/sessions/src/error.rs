//! The errors of reading and writing session files.

use std::fmt;

use contexture_wire::{Format, WireError};

/// The names of all formats, as a list in a sentence.
struct FormatNames;

impl fmt::Display for FormatNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for format in Format::ALL {
            write!(f, "{format}, ")?;
        }
        f.write_str("swe-agent, tau-bench, claude-code, codex or deepagents")
    }
}

/// How many records were read, as a sentence.
struct RecordsRead(usize);

impl fmt::Display for RecordsRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("none before it was read"),
            1 => f.write_str("1 record was read"),
            many => write!(f, "{many} records were read"),
        }
    }
}

/// An error about a session file that is not what it was declared or detected to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No such format.
    #[error("unknown session format {name:?}: expected {FormatNames}")]
    UnknownName {
        /// The name as given.
        name: String,
    },
    /// Nothing in the text tells which log it is.
    #[error("not a session log that is known ({found}): expected one of {FormatNames}")]
    Unknown {
        /// What the text looks like.
        found: String,
    },
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
    /// JSON, but not a log of the format.
    #[error("not a {format} log: expected {expected}")]
    WrongShape {
        /// The format it was to be.
        format: &'static str,
        /// What would have been accepted.
        expected: &'static str,
    },
    /// A record of a log is wrong.
    #[error("{place} {number}: expected {expected}, found {found}; {}", RecordsRead(*read))]
    Record {
        /// How records are counted: `line`, `message` or `session`.
        place: &'static str,
        /// Which, counted from 1.
        number: usize,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
        /// How many records before it were read.
        read: usize,
    },
    /// A document of a wire format is wrong.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A log of this kind is only read.
    #[error(
        "{format} chats are rows of a database, not a text: write it as ui or another wire format"
    )]
    OnlyRead {
        /// The format.
        format: &'static str,
    },
    /// A session of one log cannot be written as another.
    #[error("a {from} session cannot be written as {to}: write it as {from} or as a wire format")]
    CannotWrite {
        /// What the session was read from.
        from: &'static str,
        /// What was asked for.
        to: &'static str,
    },
    /// The metadata of a session is not what reading made.
    #[error("the session's metadata is damaged: {what}")]
    Metadata {
        /// What is wrong with it.
        what: String,
    },
}
