//! Response records: what is stored of a model's answer beside its items, such as the inputs of the call.
//!
//! A record is stored with the append that stores the answer's items, and never changes, except that
//! a redaction takes its inputs. Not here: what the inputs say; to the store they are bytes.

use std::sync::Arc;

use contexture_ir::{NodeId, ResponseId};

/// A model's answer, as a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseRecord {
    /// Its id, unique within the conversation. The nodes of its items name it.
    pub id: ResponseId,
    /// The head it was computed from; `None`: an empty path.
    pub base: Option<NodeId>,
    /// How it ended.
    pub status: ResponseStatus,
    /// The model, as the provider knows it.
    pub model: Option<String>,
    /// What it used, as JSON.
    pub usage: Option<Arc<str>>,
    /// What it was computed from beside the path to `base`.
    pub inputs: ResponseInputs,
    /// When it was stored, in milliseconds since the Unix epoch.
    pub finished_ms: i64,
}

impl ResponseRecord {
    /// A complete answer of which nothing else is known.
    #[must_use]
    pub const fn new(id: ResponseId, base: Option<NodeId>, finished_ms: i64) -> Self {
        Self {
            id,
            base,
            status: ResponseStatus::Completed,
            model: None,
            usage: None,
            inputs: ResponseInputs::None,
            finished_ms,
        }
    }

    /// Its bytes, as far as limits count them.
    #[must_use]
    pub(crate) fn size_bytes(&self) -> usize {
        let inputs = self.inputs.recorded_bytes().map_or(0, |bytes| bytes.len());
        let usage = self.usage.as_ref().map_or(0, |usage| usage.len());
        inputs + usage + self.model.as_ref().map_or(0, String::len)
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResponseStatus {
    /// The model said all it had to say.
    #[default]
    Completed,
    /// It was cut: by a limit, a filter, an abort.
    Incomplete,
}

impl ResponseStatus {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 2] = [Self::Completed, Self::Incomplete];

    /// The code that databases store for it.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The status of a number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// What an answer was computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResponseInputs {
    /// It was not recorded.
    #[default]
    None,
    /// These bytes; never none.
    Recorded(Arc<[u8]>),
    /// Something that went into it was redacted, and they went with it.
    Redacted,
}

impl ResponseInputs {
    /// The bytes, if they were recorded and not redacted.
    #[must_use]
    pub const fn recorded_bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Recorded(bytes) => Some(bytes),
            Self::None | Self::Redacted => None,
        }
    }

    /// How a database keeps them: null for none, no bytes for redacted ones.
    #[must_use]
    pub fn to_column(&self) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Recorded(bytes) => Some(bytes),
            Self::Redacted => Some(&[]),
        }
    }

    /// What a database has kept.
    #[must_use]
    pub fn from_column(column: Option<&[u8]>) -> Self {
        match column {
            None => Self::None,
            Some([]) => Self::Redacted,
            Some(bytes) => Self::Recorded(bytes.into()),
        }
    }
}
