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
    /// A name that no format has.
    #[error("unknown session format {name:?}: expected {FormatNames}")]
    UnknownName {
        /// Name of the format, as given.
        name: String,
    },
    /// Nothing in the text tells its format.
    #[error("not a session log that is known ({found}): expected one of {FormatNames}")]
    Unknown {
        /// Description of the text.
        found: String,
    },
    /// The text is not JSON.
    #[error("not JSON, line {line} column {column}")]
    NotJson {
        /// Line of the error, counted from 1.
        line: usize,
        /// Column of the error in bytes, counted from 1.
        column: usize,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// JSON, but not a log of the format.
    #[error("not a {format} log: expected {expected}")]
    WrongShape {
        /// Name of the format that the text was read as.
        format: &'static str,
        /// Description of what would have been accepted.
        expected: &'static str,
    },
    /// A record of a log is wrong.
    #[error("{place} {number}: expected {expected}, found {found}; {}", RecordsRead(*read))]
    Record {
        /// Unit in which records are counted: `line`, `message` or `session`, and for deepagents the table: `chat`,
        /// `message`, `branch` or `checkpoint`.
        place: &'static str,
        /// Number of the record, counted from 1.
        number: usize,
        /// Description of what was expected.
        expected: &'static str,
        /// Description of what was found instead.
        found: String,
        /// Number of records before it that were read.
        read: usize,
    },
    /// A log without anything that was said: most likely another program's.
    #[error(
        "no item was found in it, read as {format}: if it is of another program, name its format, one of {FormatNames}"
    )]
    NoItems {
        /// Name of the format that the text was read as.
        format: &'static str,
    },
    /// A document of a wire format is wrong.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A format in which sessions can be read but not written.
    #[error(
        "{format} chats are rows of a database, not a text: write it as ui or another wire format"
    )]
    OnlyRead {
        /// Name of the format.
        format: &'static str,
    },
    /// A session of one log format cannot be written in another.
    #[error("a {from} session cannot be written as {to}: write it as {from} or as a wire format")]
    CannotWrite {
        /// Name of the format that the session was read from.
        from: &'static str,
        /// Name of the format that was asked for.
        to: &'static str,
    },
    /// The metadata of a session is not what reading made.
    #[error("the session's metadata is damaged: {what}")]
    Metadata {
        /// Description of the damage.
        what: String,
    },
}
