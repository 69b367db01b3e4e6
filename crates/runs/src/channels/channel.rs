//! Definition of a channel, and timeouts of waiting.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use contexture_ir::Raw;
use serde::Serialize;

/// Types that can be sent. Implemented for every type with these bounds.
pub trait ChannelMessage: Clone + Serialize + Send + Sync + 'static {}

impl<T: Clone + Serialize + Send + Sync + 'static> ChannelMessage for T {}

/// What happens to messages that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelMode {
    /// The latest message is kept; every reader can read it any number of times.
    Value,
    /// Each message is received once, in the order of sending.
    Queue {
        /// Messages that may be queued before senders wait. At 0 a sender waits for a receiver.
        capacity: usize,
    },
    /// Each message goes to all receivers that wait or listen at that moment, and to nobody later.
    Topic,
}

impl fmt::Display for ChannelMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value => f.write_str("value"),
            Self::Queue { capacity } => write!(f, "queue of {capacity}"),
            Self::Topic => f.write_str("topic"),
        }
    }
}

/// A channel by name: its message type, mode and schema. It holds no messages; they live in
/// [`Channels`](super::Channels).
#[derive(Debug)]
pub struct Channel<T> {
    pub(super) name: Arc<str>,
    pub(super) mode: ChannelMode,
    pub(super) schema: Option<Raw>,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Channel<T> {
    /// Default capacity of a queue.
    pub const CAPACITY: usize = 1_000;

    /// Creates a channel of any mode.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, mode: ChannelMode) -> Self {
        Self {
            name: name.into(),
            mode,
            schema: None,
            of: PhantomData,
        }
    }

    /// Creates a channel that keeps its latest value.
    #[must_use]
    pub fn value(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ChannelMode::Value)
    }

    /// Creates a queue with a capacity of [`Self::CAPACITY`].
    #[must_use]
    pub fn queue(name: impl Into<Arc<str>>) -> Self {
        let capacity = Self::CAPACITY;
        Self::new(name, ChannelMode::Queue { capacity })
    }

    /// Creates a channel that broadcasts to everyone who listens.
    #[must_use]
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ChannelMode::Topic)
    }

    /// Adds a JSON Schema that each message is validated against when it is sent.
    #[must_use]
    pub fn with_schema(mut self, schema: Raw) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Name of the channel.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What happens to messages that are sent.
    #[must_use]
    pub fn mode(&self) -> ChannelMode {
        self.mode
    }
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            mode: self.mode,
            schema: self.schema.clone(),
            of: PhantomData,
        }
    }
}

/// How long to wait. Default: 30 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitTimeout {
    /// Waits at most this long.
    For(Duration),
    /// Waits until it happens, the run ends, or the wait is aborted.
    ForEver,
}

impl Default for WaitTimeout {
    fn default() -> Self {
        Self::For(Duration::from_secs(30))
    }
}
