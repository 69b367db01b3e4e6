//! A channel of a run: its state behind a lock, and the waiting at it.
//!
//! Values are shared while they are in here, so no code of theirs (cloning, dropping) runs under the lock. A future that is
//! dropped while it waits leaves nothing behind.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use contexture_ir::Raw;
use contexture_tools::Checker;

use super::channel::{Channel, Message, Mode, Wait};
use super::error::ChannelError;
use super::state::{Closed, Received, Sent, State, Ticket, Wakes};
use crate::cancel::Abort;

#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) name: Arc<str>,
    pub(super) mode: Mode,
    pub(super) schema: Option<Raw>,
    checker: Option<Checker>,
    state: Mutex<State<Arc<T>>>,
}

impl<T: Message> Slot<T> {
    pub(super) fn new(channel: &Channel<T>) -> Result<Self, ChannelError> {
        let checker = channel.schema.as_ref().map(Checker::new).transpose();
        Ok(Self {
            name: Arc::clone(&channel.name),
            mode: channel.mode,
            schema: channel.schema.clone(),
            checker: checker.map_err(|source| ChannelError::Schema {
                channel: Arc::clone(&channel.name),
                source,
            })?,
            state: Mutex::new(State::new(channel.mode)),
        })
    }

    /// Works on the state, then wakes whom that concerns.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State<Arc<T>>, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut state, &mut wakes);
        drop(state);
        for waker in wakes {
            waker.wake();
        }
        result
    }

    pub(super) fn closed(&self) -> ChannelError {
        ChannelError::Closed {
            channel: Arc::clone(&self.name),
        }
    }

    /// Holds a message against the schema.
    pub(super) fn check(&self, value: &T) -> Result<(), ChannelError> {
        let Some(checker) = &self.checker else {
            return Ok(());
        };
        let json = Raw::from_value(value).map_err(|error| ChannelError::NotJson {
            channel: Arc::clone(&self.name),
            why: error.to_string(),
        })?;
        checker
            .require(&json)
            .map_err(|source| ChannelError::Schema {
                channel: Arc::clone(&self.name),
                source,
            })
    }

    pub(super) async fn send(
        &self,
        value: T,
        wait: Wait,
        abort: &Abort,
    ) -> Result<(), ChannelError> {
        self.check(&value)?;
        let sent = self.with(|state, wakes| state.send(Arc::new(value), wakes));
        let ticket = match sent.map_err(|Closed| self.closed())? {
            Sent::Done => return Ok(()),
            Sent::Parked(ticket) => ticket,
        };
        let seat = Parked { slot: self, ticket };
        tokio::select! {
            biased;
            entered = poll_fn(|cx| seat.poll(cx)) => entered.map_err(|Closed| self.closed()),
            // It may have entered in this very moment: then it was sent.
            why = self.run_out(wait, abort) => match seat.withdraw() {
                Some(_) => Err(why),
                None => Ok(()),
            },
        }
    }

    pub(super) async fn recv(&self, wait: Wait, abort: &Abort) -> Result<T, ChannelError> {
        let received = self.with(State::receive);
        let ticket = match received.map_err(|Closed| self.closed())? {
            Received::Value(value) => return Ok(Arc::unwrap_or_clone(value)),
            Received::Waiting(ticket) => ticket,
        };
        let seat = Waiting { slot: self, ticket };
        tokio::select! {
            biased;
            handed = poll_fn(|cx| seat.poll(cx)) => handed.map(Arc::unwrap_or_clone).map_err(|Closed| self.closed()),
            why = self.run_out(wait, abort) => seat.stop().map(Arc::unwrap_or_clone).ok_or(why),
        }
    }

    /// Ends when there is no waiting any more, and says why.
    async fn run_out(&self, wait: Wait, abort: &Abort) -> ChannelError {
        let Wait::For(waited) = wait else {
            return abort.aborted().await.into();
        };
        match abort.guard(tokio::time::sleep(waited)).await {
            Err(cancelled) => cancelled.into(),
            Ok(()) => ChannelError::TimedOut {
                channel: Arc::clone(&self.name),
                waited,
            },
        }
    }
}

/// The place of a parked sender.
struct Parked<'s, T: Message> {
    slot: &'s Slot<T>,
    ticket: Ticket,
}

impl<T: Message> Parked<'_, T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<(), Closed>> {
        let poll = |state: &mut State<_>, _: &mut _| state.poll_parked(self.ticket, cx.waker());
        self.slot.with(poll)
    }

    fn withdraw(&self) -> Option<Arc<T>> {
        self.slot.with(|state, _| state.withdraw(self.ticket))
    }
}

impl<T: Message> Drop for Parked<'_, T> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// The place of a waiting receiver.
struct Waiting<'s, T: Message> {
    slot: &'s Slot<T>,
    ticket: Ticket,
}

impl<T: Message> Waiting<'_, T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<Arc<T>, Closed>> {
        let poll = |state: &mut State<_>, _: &mut _| state.poll_waiting(self.ticket, cx.waker());
        self.slot.with(poll)
    }

    fn stop(&self) -> Option<Arc<T>> {
        self.slot.with(|state, _| state.stop_waiting(self.ticket))
    }
}

impl<T: Message> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        self.slot
            .with(|state, wakes| state.leave(self.ticket, wakes));
    }
}
