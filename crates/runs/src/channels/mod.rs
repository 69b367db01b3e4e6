//! Channels: how the runs of one tree, and the host outside, send each other messages.
//!
//! A [`Channel`] is a name with a type and a [`ChannelMode`]; messages live in the [`Channels`] of one tree of runs, so
//! two trees are isolated even if their channels have equal names. The first use of a name defines it; another
//! definition of the same name is an error.
//!
//! | | value | queue | topic |
//! |---|---|---|---|
//! | send | replaces the value; never waits | goes to the receiver that has waited longest, else into the queue; waits while that is full | goes to everyone who waits or listens; never waits |
//! | receive | the current value, any number of times; waits for the first | the oldest, once | the next one sent |
//! | try | the current value | the oldest, or a waiting sender's | nothing |
//!
//! Waiting is first come, first served, ends after a timeout ([`WaitTimeout`], 30 s by default), an abort of
//! the caller's or an abort of the run that the channels were taken from, and leaves nothing behind. When the tree's root run ends, [`Channels::close`] refuses further sends; queued messages and
//! current values can still be received. Dropping the last [`Channels`] closes all channels.
//!
//! Not here: messages that outlive a process.

mod channel;
mod channel_slot;
mod error;
mod external;
mod state;

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_telemetry::{channel_span, record_error};
use tracing::Instrument as _;

use crate::tasks::Abort;
use channel_slot::ChannelSlot;

pub use channel::{Channel, ChannelMessage, ChannelMode, WaitTimeout};
pub use error::ChannelError;
pub use external::{ChannelSender, ChannelStream};

/// The channels of one tree of runs. A clone refers to the same channels.
///
/// ```
/// use contexture_runs::{Abort, Channel, Channels, WaitTimeout};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let (channels, abort) = (Channels::new(), Abort::new());
/// let jobs = Channel::<String>::queue("jobs");
/// channels.send(&jobs, "sweep".to_owned(), WaitTimeout::default(), &abort).await?;
/// assert_eq!(channels.recv(&jobs, WaitTimeout::default(), &abort).await?, "sweep");
/// assert_eq!(channels.try_recv(&jobs)?, None);
///
/// let other = Channel::<u32>::queue("jobs");
/// assert!(channels.try_recv(&other).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Channels {
    inner: Arc<Mutex<ChannelTable>>,
    /// Abort of the run that these were taken from: it ends every wait.
    abort: Option<Abort>,
}

#[derive(Default)]
struct ChannelTable {
    closed: bool,
    slots: BTreeMap<Arc<str>, RegisteredChannel>,
}

impl ChannelTable {
    fn close_callbacks(&self) -> Vec<Arc<dyn Fn() + Send + Sync>> {
        let entries = self.slots.values();
        entries.map(|entry| Arc::clone(&entry.close)).collect()
    }
}

/// Closes the channels, so that nobody waits for runs that are gone.
impl Drop for ChannelTable {
    fn drop(&mut self) {
        for close in self.close_callbacks() {
            close();
        }
    }
}

/// A slot with its message type erased.
struct RegisteredChannel {
    slot: Arc<dyn Any + Send + Sync>,
    kind: String,
    close: Arc<dyn Fn() + Send + Sync>,
}

impl Channels {
    /// Creates the channels of a new tree, without any channel.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same channels, on which an abort of the run ends every wait.
    pub(crate) fn bound_to(&self, abort: &Abort) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            abort: Some(abort.clone()),
        }
    }

    /// The aborts that end a wait: the caller's, and that of the run.
    fn aborts<'a>(&'a self, abort: &'a Abort) -> Result<Vec<&'a Abort>, ChannelError> {
        let aborts: Vec<&Abort> = self.abort.iter().chain([abort]).collect();
        for abort in &aborts {
            abort.ensure_not_aborted()?;
        }
        Ok(aborts)
    }

    /// Sends a message, waiting for room.
    ///
    /// # Errors
    /// [`ChannelError`]; then the value has not entered the channel and will not.
    pub async fn send<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
        value: T,
        wait: WaitTimeout,
        abort: &Abort,
    ) -> Result<(), ChannelError> {
        let aborts = self.aborts(abort)?;
        let slot = self.slot_for_channel(channel)?;
        let span = channel_span(channel.name(), "send");
        let sent = slot.send(value, wait, &aborts).instrument(span.clone());
        sent.await
            .inspect_err(|error| record_error(&span, error.kind()))
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// [`ChannelError`]; then nothing was taken out of the channel.
    pub async fn recv<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
        wait: WaitTimeout,
        abort: &Abort,
    ) -> Result<T, ChannelError> {
        let aborts = self.aborts(abort)?;
        let slot = self.slot_for_channel(channel)?;
        let span = channel_span(channel.name(), "receive");
        let received = slot.recv(wait, &aborts).instrument(span.clone());
        received
            .await
            .inspect_err(|error| record_error(&span, error.kind()))
    }

    /// Receives a message without waiting. A topic never has one.
    ///
    /// # Errors
    /// [`ChannelError::Conflict`], or [`ChannelError::Schema`] if the channel's schema is invalid.
    pub fn try_recv<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<Option<T>, ChannelError> {
        let taken = self
            .slot_for_channel(channel)?
            .with_state(state::ChannelState::take_available);
        Ok(taken.map(Arc::unwrap_or_clone))
    }

    /// Returns a handle to send from outside the run.
    ///
    /// # Errors
    /// As [`Self::try_recv`].
    pub fn external_sender<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<ChannelSender<T>, ChannelError> {
        self.slot_for_channel(channel).map(ChannelSender::new)
    }

    /// Returns a stream of messages, to read from outside the run.
    ///
    /// # Errors
    /// As [`Self::try_recv`].
    pub fn external_stream<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<ChannelStream<T>, ChannelError> {
        self.slot_for_channel(channel).map(ChannelStream::new)
    }

    /// Closes all channels, including those first used later. Called when the tree's root run has ended.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let callbacks = inner.close_callbacks();
        drop(inner);
        for close in callbacks {
            close();
        }
    }

    fn slot_for_channel<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<Arc<ChannelSlot<T>>, ChannelError> {
        let mut inner = self.lock();
        let kind = || format!("{} of {}", channel.mode, type_name::<T>());
        let Some(entry) = inner.slots.get(&channel.name) else {
            let slot = Arc::new(ChannelSlot::new(channel)?);
            let closing_slot = Arc::clone(&slot);
            let close = Arc::new(move || closing_slot.with_state(state::ChannelState::close));
            if inner.closed {
                close();
            }
            let entry = RegisteredChannel {
                slot: Arc::clone(&slot) as _,
                kind: kind(),
                close,
            };
            inner.slots.insert(Arc::clone(&channel.name), entry);
            return Ok(slot);
        };
        let conflict = |first: String, second: String| ChannelError::Conflict {
            channel: Arc::clone(&channel.name),
            first,
            second,
        };
        let slot = Arc::clone(&entry.slot).downcast::<ChannelSlot<T>>();
        let slot = slot.ok().filter(|slot| slot.mode == channel.mode);
        let slot = slot.ok_or_else(|| conflict(entry.kind.clone(), kind()))?;
        if slot.schema != channel.schema {
            let second = format!("{} with another schema", kind());
            return Err(conflict(entry.kind.clone(), second));
        }
        Ok(slot)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ChannelTable> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        let slots = inner.slots.iter().map(|(name, entry)| (name, &entry.kind));
        f.debug_map().entries(slots).finish()
    }
}
