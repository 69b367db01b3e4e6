//! Errors of channels.

use std::sync::Arc;
use std::time::Duration;

use contexture_tools::SchemaError;

use crate::tasks::Cancelled;

/// Why nothing was sent or received. A value that could not be sent never entered the channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// Nothing was sent or received within the timeout.
    #[error("nothing happened at the channel {channel:?} within {waited:?}")]
    TimedOut {
        /// Name of the channel.
        channel: Arc<str>,
        /// How long the call waited.
        waited: Duration,
    },
    /// The run has ended, and with it its channels.
    #[error("the channel {channel:?} is closed: its run has ended")]
    Closed {
        /// Name of the channel.
        channel: Arc<str>,
    },
    /// The waiting call was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Another channel of this run has the same name and a different definition.
    #[error(
        "the channel {channel:?} is a {first} already, not a {second}: use one definition, or another name"
    )]
    Conflict {
        /// Name of the channel.
        channel: Arc<str>,
        /// The definition that is registered.
        first: String,
        /// The definition that was used now.
        second: String,
    },
    /// The message does not match the channel's schema, or the schema is invalid.
    #[error("the channel {channel:?}: {source}")]
    Schema {
        /// Name of the channel.
        channel: Arc<str>,
        /// What is wrong.
        source: SchemaError,
    },
    /// The message cannot be written as JSON to be validated.
    #[error("the channel {channel:?}: the message cannot be written as JSON: {reason}")]
    NotJson {
        /// Name of the channel.
        channel: Arc<str>,
        /// Why it cannot be written.
        reason: String,
    },
}

impl ChannelError {
    /// Returns a short stable name for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "channel_timeout",
            Self::Closed { .. } => "channel_closed",
            Self::Cancelled(_) => "cancelled",
            Self::Conflict { .. } | Self::Schema { .. } | Self::NotJson { .. } => {
                "channel_mismatch"
            }
        }
    }
}
