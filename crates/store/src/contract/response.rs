//! Response records: what is stored of a model's response besides its items, such as the inputs of
//! the call.
//!
//! A record is stored with the append that stores the response's items, and never changes, except
//! that a redaction removes its inputs. The store treats the inputs as opaque bytes.

use std::sync::Arc;

use contexture_ir::{NodeId, ResponseId};

/// A model's response to one call, without its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseRecord {
    /// Id of the response, unique within the conversation. The nodes of its items name it.
    pub id: ResponseId,
    /// Head that the response was computed from; `None` for an empty path.
    pub base: Option<NodeId>,
    /// Status in which the response ended.
    pub status: ResponseStatus,
    /// Name of the model as the provider knows it, if recorded.
    pub model: Option<String>,
    /// Token usage of the call as JSON, if recorded.
    pub usage: Option<Arc<str>>,
    /// Inputs of the call besides the path to `base`.
    pub inputs: ResponseInputs,
    /// Time at which it was recorded, in milliseconds since the Unix epoch, as given by the writer.
    pub finished_ms: i64,
}

impl ResponseRecord {
    /// Returns a complete response of which nothing else is known.
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

    /// Returns the number of bytes that count towards limits.
    #[must_use]
    pub(crate) fn size_bytes(&self) -> usize {
        let inputs = self.inputs.recorded_bytes().map_or(0, |bytes| bytes.len());
        let usage = self.usage.as_ref().map_or(0, |usage| usage.len());
        inputs + usage + self.model.as_ref().map_or(0, String::len)
    }
}

/// Status in which a response ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResponseStatus {
    /// The model finished its response.
    #[default]
    Completed,
    /// The response was cut off by a limit, a filter or an abort.
    Incomplete,
}

impl ResponseStatus {
    /// All statuses, in the order of their stored codes.
    pub const ALL: [Self; 2] = [Self::Completed, Self::Incomplete];

    /// Returns the code that databases store for the status.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status of a stored code; `None` for an unknown one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Returns the lower-case word for the status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// Inputs that a response was computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResponseInputs {
    /// The inputs were not recorded.
    #[default]
    None,
    /// These bytes, never empty.
    Recorded(Arc<[u8]>),
    /// The inputs were removed because something in them was redacted.
    Redacted,
}

impl ResponseInputs {
    /// Returns the bytes, if they were recorded and not redacted.
    #[must_use]
    pub const fn recorded_bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Recorded(bytes) => Some(bytes),
            Self::None | Self::Redacted => None,
        }
    }

    /// Returns the inputs as a database stores them: null for none, no bytes for redacted ones.
    #[must_use]
    pub fn to_column(&self) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Recorded(bytes) => Some(bytes),
            Self::Redacted => Some(&[]),
        }
    }

    /// Returns the inputs that a database has stored.
    #[must_use]
    pub fn from_column(column: Option<&[u8]>) -> Self {
        match column {
            None => Self::None,
            Some([]) => Self::Redacted,
            Some(bytes) => Self::Recorded(bytes.into()),
        }
    }
}
