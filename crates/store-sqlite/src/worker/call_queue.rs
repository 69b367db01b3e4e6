//! The calls that wait for the write thread, in turn by owner.
//!
//! An owner's calls stay in their order. Of two owners each has every second turn, so who appends little does not wait behind
//! all that another one appends.
//!
//! Not here: what a call does, and how calls are committed (`write_thread`).

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use contexture_ir::Owner;

use crate::worker::write_thread::QueuedCall;

/// What one commit may hold: largest number of calls, and of bytes and rows unless a single call has more.
///
/// Every call of a commit waits for all the others of it, so this is how long one owner can keep another waiting: some tens of
/// milliseconds.
const BATCH_CALLS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 2048;

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
}

/// What to do next.
pub(crate) enum NextCalls {
    /// Commit these together.
    Batch(Vec<QueuedCall>),
    /// Run this one outside any transaction.
    Alone(QueuedCall),
    /// Nothing waits now; more may come.
    Nothing,
    /// Nothing waits, and nothing more will come.
    Closed,
}

/// The receiving end of the queue.
pub(crate) struct CallQueue {
    calls: Receiver<QueuedCall>,
    is_closed: bool,
    /// Owners with waiting calls, the next in turn first.
    turns: VecDeque<Option<Owner>>,
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
            waiting: HashMap::new(),
            alone: None,
        }
    }

    /// Takes what is next, without waiting: all that fits into one commit shares it.
    pub(crate) fn take_next(&mut self) -> NextCalls {
        self.receive_sent();
        let mut batch = Vec::new();
        let (mut bytes, mut rows) = (0, 0);
        while batch.len() < BATCH_CALLS
            && let Some(next) = self.peek()
        {
            (bytes, rows) = (bytes + next.load.bytes, rows + next.load.rows);
            // A call that fills a commit has one of its own, so that small ones do not wait for it.
            if !batch.is_empty() && (bytes > BATCH_BYTES || rows > BATCH_ROWS) {
                break;
            }
            batch.extend(self.pop());
        }
        if !batch.is_empty() {
            return NextCalls::Batch(batch);
        }
        match self.alone.take() {
            Some(alone) => NextCalls::Alone(alone),
            None if self.is_closed => NextCalls::Closed,
            None => NextCalls::Nothing,
        }
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
        if calls.is_empty() {
            self.turns.push_back(call.load.owner.clone());
        }
        calls.push_back(call);
    }

    fn peek(&self) -> Option<&QueuedCall> {
        self.waiting.get(self.turns.front()?)?.front()
    }

    fn pop(&mut self) -> Option<QueuedCall> {
        let owner = self.turns.pop_front()?;
        let calls = self.waiting.get_mut(&owner)?;
        let call = calls.pop_front();
        if calls.is_empty() {
            self.waiting.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        call
    }
}
