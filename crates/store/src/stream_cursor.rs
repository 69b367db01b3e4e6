//! Places in a stream, and how a stream ends.
//!
//! Not here: what is done with streams.

use std::fmt;

use contexture_ir::StreamId;

/// Which opening of a stream: larger is newer. A conversation never gives a number twice, not even
/// to another stream or after a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamEpoch(pub u64);

impl fmt::Display for StreamEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What a writer holds after it opened a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamClaim {
    /// The stream.
    pub stream: StreamId,
    /// Its epoch as the writer knows it.
    pub epoch: StreamEpoch,
}

/// A reader's place: the next chunk it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamCursor {
    /// The epoch it reads.
    pub epoch: StreamEpoch,
    /// The number of the chunk, from 0.
    pub seq: u64,
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The answer is whole.
    Completed,
    /// The answer broke off.
    Failed {
        /// Why, for people.
        message: String,
    },
    /// The answer was called off.
    Cancelled,
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Failed { message } => write!(f, "failed: {message}"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}
