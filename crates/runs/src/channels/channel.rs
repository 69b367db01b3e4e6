//! What a channel is, and how long one waits at it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use contexture_ir::Raw;
use serde::Serialize;

/// What can be sent. Everything that is these things is.
pub trait ChannelMessage: Clone + Serialize + Send + Sync + 'static {}

impl<T: Clone + Serialize + Send + Sync + 'static> ChannelMessage for T {}

/// What becomes of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelMode {
    /// The latest stays and is read by all, as often as they like.
    Value,
    /// Each is received once, in the order of sending.
    Queue {
        /// How many may wait to be received before senders wait. At 0 a sender waits for its receiver.
        capacity: usize,
    },
    /// Each goes to all who wait or listen at that moment, and to nobody later.
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

/// A channel by name: what goes through it, and how. It holds nothing; what is sent lives in
/// [`Channels`](super::Channels).
#[derive(Debug)]
pub struct Channel<T> {
    pub(super) name: Arc<str>,
    pub(super) mode: ChannelMode,
    pub(super) schema: Option<Raw>,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Channel<T> {
    /// How many wait in a queue for which nothing else is said.
    pub const CAPACITY: usize = 1_000;

    /// A channel of any mode.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, mode: ChannelMode) -> Self {
        Self {
            name: name.into(),
            mode,
            schema: None,
            of: PhantomData,
        }
    }

    /// A channel whose latest value stays.
    #[must_use]
    pub fn value(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ChannelMode::Value)
    }

    /// A queue of [`Self::CAPACITY`].
    #[must_use]
    pub fn queue(name: impl Into<Arc<str>>) -> Self {
        let capacity = Self::CAPACITY;
        Self::new(name, ChannelMode::Queue { capacity })
    }

    /// A channel to all who listen.
    #[must_use]
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ChannelMode::Topic)
    }

    /// The same, with a JSON Schema that each message is held against when it is sent.
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

    /// What becomes of what is sent.
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

/// How long to wait. Default 30 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitTimeout {
    /// Waits at most this long.
    For(Duration),
    /// Until it happens, or the run ends or is aborted.
    ForEver,
}

impl Default for WaitTimeout {
    fn default() -> Self {
        Self::For(Duration::from_secs(30))
    }
}
