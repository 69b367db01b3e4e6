//! What a channel does, as a machine without locks, time or tasks.
//!
//! Those who wait hold tickets, in the order in which they came. A value is *handed* to a waiting receiver by who sends
//! it, so a later one cannot overtake; a receiver that leaves with what it was handed gives it back, to the next one
//! waiting or to the head of the queue (which may then hold more than its capacity). A parked sender's value enters the
//! moment there is room. Whoever changes the state collects the wakers it is to wake, and wakes them after unlocking.
//!
//! Not here: locking and waiting ([`super::slot`]).

use std::collections::{BTreeMap, VecDeque};
use std::task::{Poll, Waker};

use super::channel::Mode;

/// How many messages of a topic wait for a listener that does not read.
pub(super) const BUFFER: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The channel takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

pub(super) type Wakes = Vec<Waker>;

#[derive(Debug)]
pub(super) struct State<M> {
    mode: Mode,
    closed: bool,
    next: u64,
    /// What waits to be received; in a value channel the current one.
    items: VecDeque<M>,
    parked: BTreeMap<Ticket, Parked<M>>,
    waiting: BTreeMap<Ticket, Option<Waker>>,
    handed: BTreeMap<Ticket, M>,
    listening: BTreeMap<Ticket, Listener<M>>,
}

#[derive(Debug)]
struct Parked<M> {
    value: M,
    waker: Option<Waker>,
}

/// One that hears all there is from now on.
#[derive(Debug)]
struct Listener<M> {
    heard: VecDeque<M>,
    /// How many may wait; the oldest goes for one more.
    keep: usize,
    /// Whether something went since it last read.
    behind: bool,
    waker: Option<Waker>,
}

/// What became of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Done,
    Parked(Ticket),
}

/// What there is for a receiver.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received<M> {
    Value(M),
    Waiting(Ticket),
}

impl<M: Clone> State<M> {
    pub(super) fn new(mode: Mode) -> Self {
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

    /// Sends; in a full queue the value is parked.
    pub(super) fn send(&mut self, value: M, wakes: &mut Wakes) -> Result<Sent, Closed> {
        let Some(value) = self.deliver(value, wakes)? else {
            return Ok(Sent::Done);
        };
        if self.parked.is_empty() && self.has_room() {
            self.items.push_back(value);
            return Ok(Sent::Done);
        }
        let ticket = self.ticket();
        let waker = None;
        self.parked.insert(ticket, Parked { value, waker });
        Ok(Sent::Parked(ticket))
    }

    /// Sends without ever waiting, and gives what fell out of a full queue for it.
    pub(super) fn push(&mut self, value: M, wakes: &mut Wakes) -> Result<Vec<M>, Closed> {
        let Some(value) = self.deliver(value, wakes)? else {
            return Ok(Vec::new());
        };
        self.items.push_back(value);
        let over = self.items.len().saturating_sub(self.capacity());
        Ok(self.items.drain(..over).collect())
    }

    /// Whether a parked value has entered.
    pub(super) fn poll_parked(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
    ) -> Poll<Result<(), Closed>> {
        let Some(parked) = self.parked.get_mut(&ticket) else {
            return Poll::Ready(Ok(()));
        };
        if self.closed {
            return Poll::Ready(Err(Closed));
        }
        parked.waker = Some(waker.clone());
        Poll::Pending
    }

    /// Takes a parked value back, if it has not entered.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<M> {
        self.parked.remove(&ticket).map(|parked| parked.value)
    }

    /// What can be received at once.
    pub(super) fn take(&mut self, wakes: &mut Wakes) -> Option<M> {
        match self.mode {
            Mode::Value => self.items.front().cloned(),
            Mode::Topic => None,
            Mode::Queue { .. } => {
                let taken = self.items.pop_front();
                let taken = taken.or_else(|| self.next_parked(wakes));
                self.promote(wakes);
                taken
            }
        }
    }

    /// Receives, or waits for it.
    pub(super) fn receive(&mut self, wakes: &mut Wakes) -> Result<Received<M>, Closed> {
        if let Some(value) = self.take(wakes) {
            return Ok(Received::Value(value));
        }
        if self.closed {
            return Err(Closed);
        }
        let ticket = self.ticket();
        self.waiting.insert(ticket, None);
        Ok(Received::Waiting(ticket))
    }

    /// What a waiting receiver was handed.
    pub(super) fn poll_waiting(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
    ) -> Poll<Result<M, Closed>> {
        if let Some(value) = self.handed.remove(&ticket) {
            return Poll::Ready(Ok(value));
        }
        if self.closed {
            return Poll::Ready(Err(Closed));
        }
        self.waiting.insert(ticket, Some(waker.clone()));
        Poll::Pending
    }

    /// What a receiver that waits no longer was handed.
    pub(super) fn stop_waiting(&mut self, ticket: Ticket) -> Option<M> {
        self.waiting.remove(&ticket);
        self.handed.remove(&ticket)
    }

    /// A receiver goes, without what it was handed.
    pub(super) fn leave(&mut self, ticket: Ticket, wakes: &mut Wakes) {
        let Some(value) = self.stop_waiting(ticket) else {
            return;
        };
        if matches!(self.mode, Mode::Queue { .. })
            && let Some(value) = self.hand(value, wakes)
        {
            self.items.push_front(value);
        }
    }

    /// Begins to listen: to the value there is, and to all that come.
    pub(super) fn listen(&mut self) -> Ticket {
        let ticket = self.ticket();
        let value = matches!(self.mode, Mode::Value);
        let listener = Listener {
            heard: if value {
                self.items.clone()
            } else {
                VecDeque::new()
            },
            keep: if value { 1 } else { BUFFER },
            behind: false,
            waker: None,
        };
        self.listening.insert(ticket, listener);
        ticket
    }

    /// What a listener hears next; nothing more once the channel is closed.
    pub(super) fn poll_listening(&mut self, ticket: Ticket, waker: &Waker) -> Poll<Option<M>> {
        let Some(listener) = self.listening.get_mut(&ticket) else {
            return Poll::Ready(None);
        };
        listener.behind = false;
        match listener.heard.pop_front() {
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

    /// Gives a value to those it is for, and gives it back if it is to be kept in the queue.
    fn deliver(&mut self, value: M, wakes: &mut Wakes) -> Result<Option<M>, Closed> {
        if self.closed {
            return Err(Closed);
        }
        match self.mode {
            Mode::Queue { .. } => return Ok(self.hand(value, wakes)),
            Mode::Value => self.items = VecDeque::from([value.clone()]),
            Mode::Topic => {}
        }
        for listener in self.listening.values_mut() {
            if listener.heard.len() >= listener.keep {
                listener.heard.pop_front();
                let told = std::mem::replace(&mut listener.behind, true);
                if !told && matches!(self.mode, Mode::Topic) {
                    tracing::warn!(
                        "a listener to a topic does not keep up: it loses the oldest messages"
                    );
                }
            }
            listener.heard.push_back(value.clone());
            wakes.extend(listener.waker.take());
        }
        for (ticket, waker) in std::mem::take(&mut self.waiting) {
            self.handed.insert(ticket, value.clone());
            wakes.extend(waker);
        }
        Ok(None)
    }

    /// Hands a value to the receiver that waits longest, or gives it back if there is none.
    fn hand(&mut self, value: M, wakes: &mut Wakes) -> Option<M> {
        let Some((ticket, waker)) = self.waiting.pop_first() else {
            return Some(value);
        };
        self.handed.insert(ticket, value);
        wakes.extend(waker);
        None
    }

    /// Lets parked values in while there is room.
    fn promote(&mut self, wakes: &mut Wakes) {
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
            Mode::Queue { capacity } => capacity,
            Mode::Value => 1,
            Mode::Topic => 0,
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }
}
