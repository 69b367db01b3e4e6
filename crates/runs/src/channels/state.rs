//! State machine of a channel, without locks, time or tasks.
//!
//! Waiting tasks hold tickets in order of arrival. A sender hands its value directly to the waiting receiver, so a
//! later receiver cannot overtake; a receiver that leaves with a handed value gives it back, to the next one waiting or
//! to the front of the queue (which may then hold more than its capacity). A parked sender's value enters as soon as
//! there is room. Methods collect the wakers they make ready, and the caller wakes them after unlocking.
//!
//! Not here: locking and waiting ([`super::channel_slot`]).

use std::collections::{BTreeMap, VecDeque};
use std::task::{Poll, Waker};

use super::channel::ChannelMode;

/// Messages of a topic that are buffered for a listener that does not read.
pub(super) const LISTENER_BUFFER: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The channel accepts no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelClosed;

pub(super) type Wakes = Vec<Waker>;

#[derive(Debug)]
pub(super) struct ChannelState<M> {
    mode: ChannelMode,
    closed: bool,
    next: u64,
    /// Queued messages; in a value channel the current one.
    items: VecDeque<M>,
    parked: BTreeMap<Ticket, ParkedValue<M>>,
    waiting: BTreeMap<Ticket, Option<Waker>>,
    handed: BTreeMap<Ticket, M>,
    listening: BTreeMap<Ticket, ChannelListener<M>>,
}

#[derive(Debug)]
struct ParkedValue<M> {
    value: M,
    waker: Option<Waker>,
}

/// A listener that receives everything sent from now on.
#[derive(Debug)]
struct ChannelListener<M> {
    buffered: VecDeque<M>,
    /// Messages that may be buffered; the oldest is dropped for each further one.
    buffer_limit: usize,
    /// Whether a message was dropped since it last read.
    has_lost_messages: bool,
    waker: Option<Waker>,
}

/// Result of sending a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendOutcome {
    Done,
    Parked(Ticket),
}

/// Result of asking for a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceiveOutcome<M> {
    Value(M),
    Waiting(Ticket),
}

impl<M: Clone> ChannelState<M> {
    pub(super) fn new(mode: ChannelMode) -> Self {
        Self {
            mode,
            closed: false,
            next: 0,
            items: VecDeque::new(),
            parked: BTreeMap::new(),
            waiting: BTreeMap::new(),
            handed: BTreeMap::new(),
            listening: BTreeMap::new(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn close(&mut self, wakes: &mut Wakes) {
        self.closed = true;
        let parked = self.parked.values_mut().map(|parked| &mut parked.waker);
        let listening = self
            .listening
            .values_mut()
            .map(|listener| &mut listener.waker);
        let all = parked.chain(self.waiting.values_mut()).chain(listening);
        wakes.extend(all.filter_map(Option::take));
    }

    /// Sends a value; in a full queue it is parked.
    pub(super) fn send_or_park(
        &mut self,
        value: M,
        wakes: &mut Wakes,
    ) -> Result<SendOutcome, ChannelClosed> {
        let Some(value) = self.deliver_to_waiting(value, wakes)? else {
            return Ok(SendOutcome::Done);
        };
        if self.parked.is_empty() && self.has_room() {
            self.items.push_back(value);
            return Ok(SendOutcome::Done);
        }
        let ticket = self.new_ticket();
        let waker = None;
        self.parked.insert(ticket, ParkedValue { value, waker });
        Ok(SendOutcome::Parked(ticket))
    }

    /// Sends without waiting, and returns the messages that were dropped from a full queue for it.
    pub(super) fn push_evicting(
        &mut self,
        value: M,
        wakes: &mut Wakes,
    ) -> Result<Vec<M>, ChannelClosed> {
        let Some(value) = self.deliver_to_waiting(value, wakes)? else {
            return Ok(Vec::new());
        };
        self.items.push_back(value);
        let over = self.items.len().saturating_sub(self.capacity());
        Ok(self.items.drain(..over).collect())
    }

    /// Checks whether a parked value has entered.
    pub(super) fn poll_parked(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
    ) -> Poll<Result<(), ChannelClosed>> {
        let Some(parked) = self.parked.get_mut(&ticket) else {
            return Poll::Ready(Ok(()));
        };
        if self.closed {
            return Poll::Ready(Err(ChannelClosed));
        }
        parked.waker = Some(waker.clone());
        Poll::Pending
    }

    /// Takes back a parked value that has not entered.
    pub(super) fn cancel_parked(&mut self, ticket: Ticket) -> Option<M> {
        self.parked.remove(&ticket).map(|parked| parked.value)
    }

    /// Takes what can be received at once.
    pub(super) fn take_available(&mut self, wakes: &mut Wakes) -> Option<M> {
        match self.mode {
            ChannelMode::Value => self.items.front().cloned(),
            ChannelMode::Topic => None,
            ChannelMode::Queue { .. } => {
                let taken = self.items.pop_front();
                let taken = taken.or_else(|| self.next_parked(wakes));
                self.promote_parked(wakes);
                taken
            }
        }
    }

    /// Receives a value, or registers as waiting.
    pub(super) fn receive_or_wait(
        &mut self,
        wakes: &mut Wakes,
    ) -> Result<ReceiveOutcome<M>, ChannelClosed> {
        if let Some(value) = self.take_available(wakes) {
            return Ok(ReceiveOutcome::Value(value));
        }
        if self.closed {
            return Err(ChannelClosed);
        }
        let ticket = self.new_ticket();
        self.waiting.insert(ticket, None);
        Ok(ReceiveOutcome::Waiting(ticket))
    }

    /// Checks whether a waiting receiver was handed a value.
    pub(super) fn poll_waiting(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
    ) -> Poll<Result<M, ChannelClosed>> {
        if let Some(value) = self.handed.remove(&ticket) {
            return Poll::Ready(Ok(value));
        }
        if self.closed {
            return Poll::Ready(Err(ChannelClosed));
        }
        self.waiting.insert(ticket, Some(waker.clone()));
        Poll::Pending
    }

    /// Ends the wait of a receiver, and returns what it was handed.
    pub(super) fn stop_waiting(&mut self, ticket: Ticket) -> Option<M> {
        self.waiting.remove(&ticket);
        self.handed.remove(&ticket)
    }

    /// Ends the wait of a receiver and gives back what it was handed.
    pub(super) fn abandon_receive(&mut self, ticket: Ticket, wakes: &mut Wakes) {
        let Some(value) = self.stop_waiting(ticket) else {
            return;
        };
        if matches!(self.mode, ChannelMode::Queue { .. })
            && let Some(value) = self.hand_to_receiver(value, wakes)
        {
            self.items.push_front(value);
        }
    }

    /// Registers a listener: for the current value, if there is one, and everything sent later.
    pub(super) fn add_listener(&mut self) -> Ticket {
        let ticket = self.new_ticket();
        let value = matches!(self.mode, ChannelMode::Value);
        let listener = ChannelListener {
            buffered: if value {
                self.items.clone()
            } else {
                VecDeque::new()
            },
            buffer_limit: if value { 1 } else { LISTENER_BUFFER },
            has_lost_messages: false,
            waker: None,
        };
        self.listening.insert(ticket, listener);
        ticket
    }

    /// Takes the next buffered message of a listener; `None` once the channel is closed and drained.
    pub(super) fn poll_listening(&mut self, ticket: Ticket, waker: &Waker) -> Poll<Option<M>> {
        let Some(listener) = self.listening.get_mut(&ticket) else {
            return Poll::Ready(None);
        };
        listener.has_lost_messages = false;
        match listener.buffered.pop_front() {
            Some(value) => Poll::Ready(Some(value)),
            None if self.closed => Poll::Ready(None),
            None => {
                listener.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    pub(super) fn stop_listening(&mut self, ticket: Ticket) {
        self.listening.remove(&ticket);
    }

    /// Delivers a value to those that wait or listen, and returns it if it has to be queued.
    fn deliver_to_waiting(
        &mut self,
        value: M,
        wakes: &mut Wakes,
    ) -> Result<Option<M>, ChannelClosed> {
        if self.closed {
            return Err(ChannelClosed);
        }
        match self.mode {
            ChannelMode::Queue { .. } => return Ok(self.hand_to_receiver(value, wakes)),
            ChannelMode::Value => self.items = VecDeque::from([value.clone()]),
            ChannelMode::Topic => {}
        }
        for listener in self.listening.values_mut() {
            if listener.buffered.len() >= listener.buffer_limit {
                listener.buffered.pop_front();
                let told = std::mem::replace(&mut listener.has_lost_messages, true);
                if !told && matches!(self.mode, ChannelMode::Topic) {
                    tracing::warn!(
                        "a listener to a topic does not keep up: it loses the oldest messages"
                    );
                }
            }
            listener.buffered.push_back(value.clone());
            wakes.extend(listener.waker.take());
        }
        for (ticket, waker) in std::mem::take(&mut self.waiting) {
            self.handed.insert(ticket, value.clone());
            wakes.extend(waker);
        }
        Ok(None)
    }

    /// Hands a value to the receiver that has waited longest, or returns it if there is none.
    fn hand_to_receiver(&mut self, value: M, wakes: &mut Wakes) -> Option<M> {
        let Some((ticket, waker)) = self.waiting.pop_first() else {
            return Some(value);
        };
        self.handed.insert(ticket, value);
        wakes.extend(waker);
        None
    }

    /// Moves parked values into the queue while there is room.
    fn promote_parked(&mut self, wakes: &mut Wakes) {
        while self.has_room()
            && let Some(value) = self.next_parked(wakes)
        {
            self.items.push_back(value);
        }
    }

    fn next_parked(&mut self, wakes: &mut Wakes) -> Option<M> {
        if self.closed {
            return None;
        }
        let (_, parked) = self.parked.pop_first()?;
        wakes.extend(parked.waker);
        Some(parked.value)
    }

    fn has_room(&self) -> bool {
        self.items.len() < self.capacity()
    }

    fn capacity(&self) -> usize {
        match self.mode {
            ChannelMode::Queue { capacity } => capacity,
            ChannelMode::Value => 1,
            ChannelMode::Topic => 0,
        }
    }

    fn new_ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }
}
