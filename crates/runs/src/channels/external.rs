//! Ends of channels outside a run: a handle to send through, a stream to read from.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use super::channel::{ChannelMessage, ChannelMode};
use super::channel_slot::ChannelSlot;
use super::error::ChannelError;
use super::state::{ChannelClosed, ReceiveOutcome, Ticket};

/// Sends into a run from outside without ever waiting, for hosts that must not block.
///
/// If a queue is full its oldest message is dropped, with a warning in the log. A queue of capacity 0 keeps nothing:
/// unless a receiver waits, the message is lost.
#[derive(Debug)]
pub struct ChannelSender<T> {
    slot: Arc<ChannelSlot<T>>,
}

impl<T: ChannelMessage> ChannelSender<T> {
    pub(super) fn new(slot: Arc<ChannelSlot<T>>) -> Self {
        Self { slot }
    }

    /// Sends a message to the channel.
    ///
    /// # Errors
    /// [`ChannelError::Closed`] once the run has ended, [`ChannelError::Schema`] for a message that does not match the
    /// schema, [`ChannelError::NotJson`] for one that cannot be validated.
    pub fn send(&self, value: T) -> Result<(), ChannelError> {
        self.slot.validate_message(&value)?;
        let value = Arc::new(value);
        let pushed = self
            .slot
            .with_state(|state, wakes| state.push_evicting(value, wakes));
        let dropped = pushed.map_err(|ChannelClosed| self.slot.closed_error())?;
        if !dropped.is_empty() {
            tracing::warn!(
                channel = &*self.slot.name,
                dropped = dropped.len(),
                "a full channel is sent to from outside: the oldest is dropped"
            );
        }
        Ok(())
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.slot.with_state(|state, _| state.is_closed())
    }
}

impl<T> Clone for ChannelSender<T> {
    fn clone(&self) -> Self {
        Self {
            slot: Arc::clone(&self.slot),
        }
    }
}

/// Reads from a run until it ends and everything is read.
///
/// On a queue it competes with the other receivers. On a topic it receives what is sent from now on; with 1,000 unread
/// messages the oldest is dropped for each new one, with a warning. On a value channel it reads the current value, then
/// the latest after each change.
#[derive(Debug)]
pub struct ChannelStream<T: ChannelMessage> {
    slot: Arc<ChannelSlot<T>>,
    ticket: Option<Ticket>,
}

impl<T: ChannelMessage> ChannelStream<T> {
    pub(super) fn new(slot: Arc<ChannelSlot<T>>) -> Self {
        let listens = !is_queue(slot.mode);
        let ticket = listens.then(|| slot.with_state(|state, _| state.add_listener()));
        Self { slot, ticket }
    }

    /// Takes a message from a queue, or registers as a waiting receiver.
    fn poll_queue(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<T>, ChannelClosed>> {
        let ticket = self.ticket;
        let (ticket, polled) = self.slot.with_state(|state, wakes| {
            let ticket = match ticket {
                Some(ticket) => ticket,
                None => match state.receive_or_wait(wakes) {
                    Ok(ReceiveOutcome::Value(value)) => return (None, Poll::Ready(Ok(value))),
                    Ok(ReceiveOutcome::Waiting(ticket)) => ticket,
                    Err(ChannelClosed) => return (None, Poll::Ready(Err(ChannelClosed))),
                },
            };
            let polled = state.poll_waiting(ticket, cx.waker());
            // A ticket that was answered is used up; one that failed is kept, so that dropping the stream gives it
            // back.
            let used = matches!(polled, Poll::Ready(Ok(_)));
            ((!used).then_some(ticket), polled)
        });
        self.ticket = ticket;
        polled
    }
}

impl<T: ChannelMessage> Stream for ChannelStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let polled = match this.ticket {
            _ if is_queue(this.slot.mode) => this.poll_queue(cx).map(Result::ok),
            Some(ticket) => {
                let waker = cx.waker();
                this.slot
                    .with_state(|state, _| state.poll_listening(ticket, waker))
            }
            None => Poll::Ready(None),
        };
        polled.map(|value| value.map(Arc::unwrap_or_clone))
    }
}

impl<T: ChannelMessage> Drop for ChannelStream<T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else {
            return;
        };
        self.slot.with_state(|state, wakes| {
            state.abandon_receive(ticket, wakes);
            state.stop_listening(ticket);
        });
    }
}

fn is_queue(mode: ChannelMode) -> bool {
    matches!(mode, ChannelMode::Queue { .. })
}
