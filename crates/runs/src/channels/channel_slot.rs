//! One channel of a run: its state behind a lock, and waiting for it.
//!
//! Values are shared, so cloning a message never runs under the lock; dropping its last reference may. A future that is
//! dropped while it waits leaves no ticket behind.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use contexture_ir::Raw;
use contexture_tools::SchemaValidator;
use futures_util::future::select_all;

use crate::channels::channel::{Channel, ChannelMessage, ChannelMode, WaitTimeout};
use crate::channels::error::ChannelError;
use crate::channels::state::{
    ChannelClosed, ChannelState, ReceiveOutcome, SendOutcome, Ticket, Wakes,
};
use crate::tasks::Abort;

#[derive(Debug)]
pub(super) struct ChannelSlot<T> {
    pub(super) name: Arc<str>,
    pub(super) mode: ChannelMode,
    pub(super) schema: Option<Raw>,
    checker: Option<SchemaValidator>,
    state: Mutex<ChannelState<Arc<T>>>,
}

impl<T: ChannelMessage> ChannelSlot<T> {
    pub(super) fn new(channel: &Channel<T>) -> Result<Self, ChannelError> {
        let checker = channel
            .schema
            .as_ref()
            .map(SchemaValidator::new)
            .transpose();
        Ok(Self {
            name: Arc::clone(&channel.name),
            mode: channel.mode,
            schema: channel.schema.clone(),
            checker: checker.map_err(|source| ChannelError::Schema {
                channel: Arc::clone(&channel.name),
                source,
            })?,
            state: Mutex::new(ChannelState::new(channel.mode)),
        })
    }

    /// Runs `work` under the lock, then wakes the tasks it collected.
    pub(super) fn with_state<R>(
        &self,
        work: impl FnOnce(&mut ChannelState<Arc<T>>, &mut Wakes) -> R,
    ) -> R {
        let mut wakes = Wakes::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut state, &mut wakes);
        drop(state);
        for waker in wakes {
            waker.wake();
        }
        result
    }

    pub(super) fn closed_error(&self) -> ChannelError {
        ChannelError::Closed {
            channel: Arc::clone(&self.name),
        }
    }

    /// Validates a message against the channel's schema.
    pub(super) fn validate_message(&self, value: &T) -> Result<(), ChannelError> {
        let Some(checker) = &self.checker else {
            return Ok(());
        };
        let json = Raw::from_value(value).map_err(|error| ChannelError::NotJson {
            channel: Arc::clone(&self.name),
            reason: error.to_string(),
        })?;
        checker
            .check_value(&json)
            .map_err(|source| ChannelError::Schema {
                channel: Arc::clone(&self.name),
                source,
            })
    }

    pub(super) async fn send(
        &self,
        value: T,
        wait: WaitTimeout,
        aborts: &[&Abort],
    ) -> Result<(), ChannelError> {
        self.validate_message(&value)?;
        let sent = self.with_state(|state, wakes| state.send_or_park(Arc::new(value), wakes));
        let ticket = match sent.map_err(|ChannelClosed| self.closed_error())? {
            SendOutcome::Done => return Ok(()),
            SendOutcome::Parked(ticket) => ticket,
        };
        let registration = ParkedSender { slot: self, ticket };
        tokio::select! {
            biased;
            entered = poll_fn(|cx| registration.poll(cx)) => entered.map_err(|ChannelClosed| self.closed_error()),
            // The value may have entered at the same moment as the timeout or abort; then the send has succeeded.
            reason = self.wait_until_expired(wait, aborts) => match registration.cancel_send() {
                Some(_) => Err(reason),
                None => Ok(()),
            },
        }
    }

    pub(super) async fn recv(
        &self,
        wait: WaitTimeout,
        aborts: &[&Abort],
    ) -> Result<T, ChannelError> {
        let received = self.with_state(ChannelState::receive_or_wait);
        let ticket = match received.map_err(|ChannelClosed| self.closed_error())? {
            ReceiveOutcome::Value(value) => return Ok(Arc::unwrap_or_clone(value)),
            ReceiveOutcome::Waiting(ticket) => ticket,
        };
        let registration = WaitingReceiver { slot: self, ticket };
        tokio::select! {
            biased;
            handed = poll_fn(|cx| registration.poll(cx)) => handed.map(Arc::unwrap_or_clone).map_err(|ChannelClosed| self.closed_error()),
            reason = self.wait_until_expired(wait, aborts) => registration.cancel_receive().map(Arc::unwrap_or_clone).ok_or(reason),
        }
    }

    /// Waits for the timeout or the first of the aborts, and returns the error for it.
    async fn wait_until_expired(&self, wait: WaitTimeout, aborts: &[&Abort]) -> ChannelError {
        let aborted = aborts.iter().map(|abort| Box::pin(abort.wait_for_abort()));
        let aborted = select_all(aborted);
        let WaitTimeout::For(waited) = wait else {
            return aborted.await.0.into();
        };
        tokio::select! {
            biased;
            (cancelled, ..) = aborted => cancelled.into(),
            () = tokio::time::sleep(waited) => ChannelError::TimedOut {
                channel: Arc::clone(&self.name),
                waited,
            },
        }
    }
}

/// Removes a parked sender's value when the wait ends.
struct ParkedSender<'s, T: ChannelMessage> {
    slot: &'s ChannelSlot<T>,
    ticket: Ticket,
}

impl<T: ChannelMessage> ParkedSender<'_, T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<(), ChannelClosed>> {
        let poll =
            |state: &mut ChannelState<_>, _: &mut _| state.poll_parked(self.ticket, cx.waker());
        self.slot.with_state(poll)
    }

    fn cancel_send(&self) -> Option<Arc<T>> {
        self.slot
            .with_state(|state, _| state.cancel_parked(self.ticket))
    }
}

impl<T: ChannelMessage> Drop for ParkedSender<'_, T> {
    fn drop(&mut self) {
        self.cancel_send();
    }
}

/// Gives up a waiting receiver's ticket when the wait ends.
struct WaitingReceiver<'s, T: ChannelMessage> {
    slot: &'s ChannelSlot<T>,
    ticket: Ticket,
}

impl<T: ChannelMessage> WaitingReceiver<'_, T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<Arc<T>, ChannelClosed>> {
        let poll =
            |state: &mut ChannelState<_>, _: &mut _| state.poll_waiting(self.ticket, cx.waker());
        self.slot.with_state(poll)
    }

    fn cancel_receive(&self) -> Option<Arc<T>> {
        self.slot
            .with_state(|state, _| state.stop_waiting(self.ticket))
    }
}

impl<T: ChannelMessage> Drop for WaitingReceiver<'_, T> {
    fn drop(&mut self) {
        self.slot
            .with_state(|state, wakes| state.abandon_receive(self.ticket, wakes));
    }
}
