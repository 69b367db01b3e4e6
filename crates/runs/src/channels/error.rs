//! What goes wrong at a channel.

use std::sync::Arc;
use std::time::Duration;

use contexture_tools::SchemaError;

use crate::tasks::Cancelled;

/// Why nothing was sent or received. A value that could not be sent never entered the channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// Nobody came in time.
    #[error("nothing happened at the channel {channel:?} within {waited:?}")]
    TimedOut {
        /// Name of the channel.
        channel: Arc<str>,
        /// How long was waited.
        waited: Duration,
    },
    /// The run has ended, and with it its channels.
    #[error("the channel {channel:?} is closed: its run has ended")]
    Closed {
        /// Name of the channel.
        channel: Arc<str>,
    },
    /// Who waited was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The name is that of another channel of this run.
    #[error(
        "the channel {channel:?} is a {first} already, not a {second}: use one definition, or another name"
    )]
    Conflict {
        /// Name of the channel.
        channel: Arc<str>,
        /// What it is.
        first: String,
        /// What it was taken for.
        second: String,
    },
    /// The message is not of the channel's schema, or that is none.
    #[error("the channel {channel:?}: {source}")]
    Schema {
        /// Name of the channel.
        channel: Arc<str>,
        /// What is wrong.
        source: SchemaError,
    },
    /// The message cannot be written as JSON to be held against the schema.
    #[error("the channel {channel:?}: the message cannot be written as JSON: {reason}")]
    NotJson {
        /// Name of the channel.
        channel: Arc<str>,
        /// Why it cannot be written.
        reason: String,
    },
}
