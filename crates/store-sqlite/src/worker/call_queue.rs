//! The calls that wait for the write thread, in turn by owner.
//!
//! An owner's calls stay in their order. Owners are served in rounds, one call each: who comes while another owner's call
//! runs is served next, however much that owner has waiting.
//!
//! Not here: what a call does, and how calls are committed (`write_thread`).

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use contexture_ir::Owner;

use crate::worker::write_thread::QueuedCall;

/// What one commit may hold: largest number of calls, and of bytes and rows unless a single call has more.
///
/// Every call of a commit waits for all the others of it.
const BATCH_CALLS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 1024;

/// Bytes and rows from which a call takes longer than the sync of a commit: calls that come before it do not wait for it.
const LARGE_BYTES: usize = 1 << 20;
const LARGE_ROWS: usize = 256;

/// What a call writes, and for whom.
#[derive(Clone, Debug)]
pub(crate) struct CallLoad {
    /// `None` for the store's own work.
    pub(crate) owner: Option<Owner>,
    /// Bytes of its payload.
    pub(crate) bytes: usize,
    /// Rows that take time beside the payload, roughly.
    pub(crate) rows: usize,
}

impl CallLoad {
    /// Work of the store itself.
    pub(crate) const OWN: Self = Self {
        owner: None,
        bytes: 0,
        rows: 1,
    };

    /// A small call of an owner.
    pub(crate) fn of(owner: &Owner) -> Self {
        Self {
            owner: Some(owner.clone()),
            ..Self::OWN
        }
    }

    pub(crate) fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    pub(crate) fn with_rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    fn is_large(&self) -> bool {
        self.bytes >= LARGE_BYTES || self.rows >= LARGE_ROWS
    }
}

/// What to do next.
pub(crate) enum NextCalls {
    /// Commit what [`CallQueue::take_for_commit`] gives, at least one call.
    Commit,
    /// Run this one outside any transaction.
    Alone(QueuedCall),
    /// Nothing waits now; more may come.
    Nothing,
    /// Nothing waits, and nothing more will come.
    Closed,
}

/// What a commit holds so far.
#[derive(Debug, Default)]
pub(crate) struct CommitLoad {
    calls: usize,
    bytes: usize,
    rows: usize,
}

/// The receiving end of the queue.
pub(crate) struct CallQueue {
    calls: Receiver<QueuedCall>,
    is_closed: bool,
    /// Owners with waiting calls that this round has not served yet, the next in turn first.
    turns: VecDeque<Option<Owner>>,
    /// Owners that this round has served, with their place in it. Those with more waiting calls have their turn in the next
    /// round, in the same order.
    served: HashMap<Option<Owner>, usize>,
    waiting: HashMap<Option<Owner>, VecDeque<QueuedCall>>,
    /// A call that runs when all that were sent before it have; what was sent later is not received yet.
    alone: Option<QueuedCall>,
}

impl CallQueue {
    pub(crate) fn new(calls: Receiver<QueuedCall>) -> Self {
        Self {
            calls,
            is_closed: false,
            turns: VecDeque::new(),
            served: HashMap::new(),
            waiting: HashMap::new(),
            alone: None,
        }
    }

    /// Returns what is next, without waiting. Calls that are sent later are not part of that commit.
    pub(crate) fn take_next(&mut self) -> NextCalls {
        self.receive_sent();
        if self.peek().is_some() {
            return NextCalls::Commit;
        }
        match self.alone.take() {
            Some(alone) => NextCalls::Alone(alone),
            None if self.is_closed => NextCalls::Closed,
            None => NextCalls::Nothing,
        }
    }

    /// Takes the next call of a commit, which is counted in its load. `None`: nothing waits, or the next one does not fit.
    ///
    /// Call by call, and not all at once: where a commit ends early, the rest still has its turn.
    pub(crate) fn take_for_commit(&mut self, load: &mut CommitLoad) -> Option<QueuedCall> {
        let next = &self.peek()?.load;
        let (bytes, rows) = (load.bytes + next.bytes, load.rows + next.rows);
        let is_full = load.calls == BATCH_CALLS || bytes > BATCH_BYTES || rows > BATCH_ROWS;
        if load.calls > 0 && (is_full || next.is_large()) {
            return None;
        }
        let calls = load.calls + 1;
        *load = CommitLoad { calls, bytes, rows };
        self.pop()
    }

    /// Waits until something was sent, or so long; returns whether something may be next.
    pub(crate) fn wait(&mut self, longest: Option<Duration>) -> bool {
        let received = match longest {
            Some(longest) => self.calls.recv_timeout(longest),
            None => self.calls.recv().map_err(RecvTimeoutError::from),
        };
        match received {
            Ok(call) => self.push(call),
            Err(RecvTimeoutError::Disconnected) => self.is_closed = true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
        true
    }

    /// Receives what was sent, up to a call that runs alone.
    fn receive_sent(&mut self) {
        while self.alone.is_none() {
            match self.calls.try_recv() {
                Ok(call) => self.push(call),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    fn push(&mut self, call: QueuedCall) {
        if call.is_alone {
            self.alone = Some(call);
            return;
        }
        let calls = self.waiting.entry(call.load.owner.clone()).or_default();
        // An owner that comes back within the round waits for the next one: otherwise those who always come back in time would
        // keep the rest from being served.
        if calls.is_empty() && !self.served.contains_key(&call.load.owner) {
            self.turns.push_back(call.load.owner.clone());
        }
        calls.push_back(call);
    }

    /// Returns the call that [`CallQueue::pop`] would take.
    fn peek(&self) -> Option<&QueuedCall> {
        let first_of_next = || {
            self.waiting
                .keys()
                .min_by_key(|owner| self.served.get(*owner))
        };
        let owner = self.turns.front().or_else(first_of_next)?;
        self.waiting.get(owner)?.front()
    }

    fn pop(&mut self) -> Option<QueuedCall> {
        // Here and not when the last turn is taken: who comes until now is still served in this round.
        if self.turns.is_empty() {
            let mut owners: Vec<_> = self.waiting.keys().cloned().collect();
            owners.sort_unstable_by_key(|owner| self.served.get(owner).copied());
            self.turns = owners.into();
            self.served.clear();
        }
        let owner = self.turns.pop_front()?;
        let calls = self.waiting.get_mut(&owner)?;
        let call = calls.pop_front();
        if calls.is_empty() {
            self.waiting.remove(&owner);
        }
        // Nobody waits: owners that come one by one must not add up.
        if self.waiting.is_empty() {
            self.served.clear();
        }
        self.served.insert(owner, self.served.len());
        call
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Queues a call of an owner with so many rows.
    fn send(calls: &Sender<QueuedCall>, owner: &str, rows: usize) {
        let owner = Owner::new(owner).unwrap();
        let load = CallLoad::of(&owner).with_rows(rows);
        calls.send(QueuedCall::without_work(load)).unwrap();
    }

    /// Takes what is committed next; returns whose calls these are.
    fn take(queue: &mut CallQueue) -> Vec<String> {
        if !matches!(queue.take_next(), NextCalls::Commit) {
            return Vec::new();
        }
        let mut load = CommitLoad::default();
        let calls = std::iter::from_fn(|| queue.take_for_commit(&mut load));
        let owners = calls.map(|call| call.load.owner.unwrap());
        owners.map(|owner| owner.as_str().to_owned()).collect()
    }

    #[test]
    fn who_comes_while_a_call_runs_is_next() {
        let (calls, receiver) = channel();
        let mut queue = CallQueue::new(receiver);
        for _ in 0..3 {
            send(&calls, "eve", 4_000);
        }
        for _ in 0..2 {
            assert_eq!(take(&mut queue), ["eve"]);
            send(&calls, "ada", 1);
            send(&calls, "ada", 1);
            assert_eq!(take(&mut queue), ["ada"]);
        }
        assert_eq!(take(&mut queue), ["eve"]);
        assert_eq!(take(&mut queue), ["ada", "ada"]);
        assert!(take(&mut queue).is_empty());
    }

    /// Also an owner that this round has served already, before the one whose call runs.
    #[test]
    fn who_was_served_longest_ago_is_next() {
        let (calls, receiver) = channel();
        let mut queue = CallQueue::new(receiver);
        send(&calls, "ada", 1);
        assert_eq!(take(&mut queue), ["ada"]);
        for _ in 0..3 {
            send(&calls, "eve", 4_000);
        }
        assert_eq!(take(&mut queue), ["eve"]);
        send(&calls, "ada", 1);
        assert_eq!(take(&mut queue), ["ada"]);
        assert_eq!(take(&mut queue), ["eve"]);
    }

    /// Owners that send their next call as soon as one is done keep nobody else waiting.
    #[test]
    fn who_comes_back_waits_for_the_next_round() {
        let (calls, receiver) = channel();
        let mut queue = CallQueue::new(receiver);
        for owner in ["ada", "bob", "eve"] {
            send(&calls, owner, 2_000);
        }
        let mut served = Vec::new();
        for _ in 0..9 {
            let owners = take(&mut queue);
            for owner in &owners {
                send(&calls, owner, 2_000);
            }
            served.extend(owners);
        }
        let rounds: Vec<_> = served.chunks(3).collect();
        assert_eq!(rounds, [["ada", "bob", "eve"]; 3]);
    }

    /// A commit that ends early leaves each owner its place.
    #[test]
    fn what_a_commit_leaves_is_next() {
        let (calls, receiver) = channel();
        let mut queue = CallQueue::new(receiver);
        for owner in ["eve", "eve", "eve", "ada"] {
            send(&calls, owner, 1);
        }
        assert!(matches!(queue.take_next(), NextCalls::Commit));
        let first = queue.take_for_commit(&mut CommitLoad::default());
        assert_eq!(first.unwrap().load.owner.unwrap().as_str(), "eve");
        assert_eq!(take(&mut queue), ["ada", "eve", "eve"]);
    }

    #[test]
    fn small_calls_wait_for_no_large_one_after_them() {
        let (calls, receiver) = channel();
        let mut queue = CallQueue::new(receiver);
        for (owner, rows) in [("ada", 1), ("bob", 20), ("eve", LARGE_ROWS), ("joe", 1)] {
            send(&calls, owner, rows);
        }
        assert_eq!(take(&mut queue), ["ada", "bob"]);
        assert_eq!(take(&mut queue), ["eve", "joe"]);
    }

    /// Owners that come one by one leave nothing behind.
    #[test]
    fn owners_that_were_served_are_forgotten() {
        let (calls, receiver) = channel();
        let mut queue = CallQueue::new(receiver);
        for n in 0..100 {
            send(&calls, &format!("owner-{n}"), 1);
            assert_eq!(take(&mut queue).len(), 1);
        }
        assert!(queue.served.len() <= 1, "{:?}", queue.served);
    }
}
