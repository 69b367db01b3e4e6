//! Channels: how the runs of one tree, and the host outside, send each other messages.
//!
//! A [`Channel`] is a name with a type and a [`ChannelMode`]; what is sent lives in the [`Channels`] of one tree of runs, so two
//! trees never hear each other, whatever their channels are called. The first use of a name says what it is; another
//! definition of the same name is an error.
//!
//! | | value | queue | topic |
//! |---|---|---|---|
//! | send | takes the place of the last; never waits | to who waits longest, else into the queue; waits while that is full | to all who wait or listen; never waits |
//! | receive | the current one, again and again; waits for the first | the oldest, once | the next one sent |
//! | try | the current one | the oldest, a waiting sender's too | nothing |
//!
//! Waiting is first come, first served, ends after a time ([`WaitTimeout`], 30 s unless said otherwise) or with an abort, and
//! leaves nothing behind. When the tree's root run ends, [`Channels::close`] refuses what is sent from then on; what waits
//! in queues, and the current values, can still be received. Channels that are dropped are closed.
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

use crate::tasks::Abort;
use channel_slot::ChannelSlot;

pub use channel::{Channel, ChannelMessage, ChannelMode, WaitTimeout};
pub use error::ChannelError;
pub use external::{ChannelSender, ChannelStream};

/// The channels of one tree of runs. A clone is the same channels.
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

/// Nobody waits at channels that no run has any more.
impl Drop for ChannelTable {
    fn drop(&mut self) {
        for close in self.close_callbacks() {
            close();
        }
    }
}

/// A slot whose type only its channel knows.
struct RegisteredChannel {
    slot: Arc<dyn Any + Send + Sync>,
    kind: String,
    close: Arc<dyn Fn() + Send + Sync>,
}

impl Channels {
    /// The channels of a new tree: none yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
        abort.ensure_not_aborted()?;
        self.slot_for_channel(channel)?
            .send(value, wait, abort)
            .await
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
        abort.ensure_not_aborted()?;
        self.slot_for_channel(channel)?.recv(wait, abort).await
    }

    /// What can be received without waiting. Always nothing in a topic.
    ///
    /// # Errors
    /// [`ChannelError::Conflict`], [`ChannelError::Schema`] for a schema that is none.
    pub fn try_recv<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<Option<T>, ChannelError> {
        let taken = self
            .slot_for_channel(channel)?
            .with_state(state::ChannelState::take_available);
        Ok(taken.map(Arc::unwrap_or_clone))
    }

    /// A handle to send by from outside.
    ///
    /// # Errors
    /// As [`Self::try_recv`].
    pub fn external_sender<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<ChannelSender<T>, ChannelError> {
        self.slot_for_channel(channel).map(ChannelSender::new)
    }

    /// A stream of what is sent, to read from outside.
    ///
    /// # Errors
    /// As [`Self::try_recv`].
    pub fn external_stream<T: ChannelMessage>(
        &self,
        channel: &Channel<T>,
    ) -> Result<ChannelStream<T>, ChannelError> {
        self.slot_for_channel(channel).map(ChannelStream::new)
    }

    /// Closes all channels, also those that are named later: the tree's root run has ended.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let closes = inner.close_callbacks();
        drop(inner);
        for close in closes {
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
            let closes = Arc::clone(&slot);
            let close = Arc::new(move || closes.with_state(state::ChannelState::close));
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
