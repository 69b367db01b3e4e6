//! Exchanges under way: requests to a provider whose answers are not recorded yet.
//!
//! A client at full speed sends its next request while the answer that it holds is still being recorded. A history is
//! matched by recorded answers only, so such a request waits for the record, and for nothing else:
//!
//! * An exchange is awaited once its answer was *delivered*: nobody holds an answer before that, and recording it is then a
//!   matter of milliseconds. A model that still answers is never waited for, so neither a retry nor a parallel twin waits.
//! * It is awaited if the request has a step of the model behind what the exchange asked, or names its answer or its
//!   conversation. What an exchange asks is unknown until its request is read; till then it may be any.
//! * Only earlier arrivals are awaited, so no two requests wait for each other.
//!
//! Not here: what a request asks and holds, and exchanges of other processes (`ingest`), when an answer is delivered (the caller says so).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture_ir::{ConversationId, Owner, PathHash};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// Longest time that a request waits for one answer, from when nothing else holds up the recording of that.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);

/// The exchanges of one process. Clones share one registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges(Arc<Mutex<Registry>>);

#[derive(Debug, Default)]
struct Registry {
    arrivals: u64,
    /// By owner and order of arrival.
    open: BTreeMap<Owner, BTreeMap<u64, watch::Sender<ExchangeState>>>,
}

/// What is known of an exchange by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangeState {
    /// What its answer follows; `None` until its request is read.
    pub(crate) question: Option<Question>,
    /// Its conversation, as soon as that is known.
    pub(crate) conversation: Option<ConversationId>,
    /// Key of its answer's name; `None` until the answer is read.
    pub(crate) answer: Option<PathHash>,
    /// When its answer was delivered, or none will be.
    delivered: Option<Instant>,
    /// Whether a later request waits for its answer to be recorded.
    is_wanted: bool,
    /// Whether its request waits for an earlier answer.
    is_waiting: bool,
    is_over: bool,
}

/// The history that an answer follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Key of the owner's partition: histories of different ones never meet.
    pub(crate) partition: PathHash,
    pub(crate) history: PathHash,
}

/// One exchange with a provider: from the arrival of a request until its answer is recorded, or never will be.
///
/// Made by [`Engine::begin_exchange`](crate::Engine::begin_exchange) when the request arrives, named in
/// [`IngestRequest::exchange`](crate::IngestRequest::exchange), and dropped when nothing more is stored for it.
#[derive(Debug)]
pub struct Exchange {
    exchanges: Exchanges,
    owner: Owner,
    arrival: u64,
    state: ExchangeHandle,
}

/// The delivery of an exchange's answer. It is over when this is dropped, which must not be later than the client can hold
/// the last of it.
#[derive(Debug)]
pub struct AnswerDelivery(ExchangeHandle);

/// Tells what becomes known of an exchange, for as long as anybody wants to know.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeHandle(watch::Sender<ExchangeState>);

impl Exchanges {
    /// Registers an exchange whose request has just arrived.
    pub(crate) fn begin_exchange(&self, owner: &Owner) -> Exchange {
        let (sender, _) = watch::channel(ExchangeState::default());
        let mut registry = self.lock_registry();
        registry.arrivals += 1;
        let arrival = registry.arrivals;
        let open = registry.open.entry(owner.clone()).or_default();
        open.insert(arrival, sender.clone());
        Exchange {
            exchanges: self.clone(),
            owner: owner.clone(),
            arrival,
            state: ExchangeHandle(sender),
        }
    }

    fn lock_registry(&self) -> MutexGuard<'_, Registry> {
        // No foreign code runs under this lock, so a poisoned registry is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// Returns the mark of its answer's delivery, to be dropped when the client has all of the answer, or no more of it will
    /// come.
    #[must_use]
    pub fn delivery(&self) -> AnswerDelivery {
        AnswerDelivery(self.state.clone())
    }

    /// Leaves the processor to the client, which takes its answer: waits until so long after the delivery of the answer, or
    /// until a later request waits for it to be recorded.
    pub async fn wait_while_client_reads(&self, time: Duration) {
        let mut state = self.state.0.subscribe();
        // An error would mean that the exchange is over, which it is not while this is borrowed.
        let delivered = state.wait_for(|state| state.is_wanted || state.delivered.is_some());
        let Some(delivered) = delivered.await.ok().and_then(|state| state.delivered) else {
            return;
        };
        let wanted = state.wait_for(|state| state.is_wanted);
        let _ = timeout_at(delivered + time, wanted).await;
    }

    pub(crate) fn handle(&self) -> ExchangeHandle {
        self.state.clone()
    }

    /// The delivered exchanges that arrived before this one and are awaited; they are told.
    fn earlier_exchanges(
        &self,
        is_awaited: impl Fn(&ExchangeState) -> bool,
    ) -> Vec<watch::Receiver<ExchangeState>> {
        let registry = self.exchanges.lock_registry();
        let open = registry.open.get(&self.owner).into_iter();
        let earlier = open.flat_map(|open| open.range(..self.arrival));
        let awaited = earlier.filter(|(_, sender)| is_awaited(&sender.borrow()));
        let awaited = awaited.map(|(_, sender)| {
            sender.send_modify(|state| state.is_wanted = true);
            sender.subscribe()
        });
        awaited.collect()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut registry = self.exchanges.lock_registry();
        if let Some(open) = registry.open.get_mut(&self.owner) {
            open.remove(&self.arrival);
            if open.is_empty() {
                registry.open.remove(&self.owner);
            }
        }
        drop(registry);
        self.state.update_state(|state| state.is_over = true);
    }
}

impl Drop for AnswerDelivery {
    fn drop(&mut self) {
        self.0
            .update_state(|state| state.delivered = Some(Instant::now()));
    }
}

impl ExchangeHandle {
    pub(crate) fn update_state(&self, change: impl FnOnce(&mut ExchangeState)) {
        self.0.send_modify(change);
    }
}

/// The waiting of one request, and its bound.
#[derive(Debug)]
pub(crate) struct AnswerWait<'a> {
    exchange: Option<&'a Exchange>,
    /// Time waited in all.
    pub(crate) waited: Duration,
    /// Whether it went on although an awaited answer was not recorded.
    pub(crate) raced: bool,
}

impl<'a> AnswerWait<'a> {
    pub(crate) const fn new(exchange: Option<&'a Exchange>) -> Self {
        Self {
            exchange,
            waited: Duration::ZERO,
            raced: false,
        }
    }

    /// Tells what becomes known of the request's own exchange.
    pub(crate) fn update_exchange(&self, change: impl FnOnce(&mut ExchangeState)) {
        if let Some(exchange) = self.exchange {
            exchange.state.update_state(change);
        }
    }

    /// Waits until no earlier exchange with a delivered answer is awaited any more. Returns whether there was one.
    pub(crate) async fn wait_for_answers(
        &mut self,
        is_awaited: impl Fn(&ExchangeState) -> bool,
    ) -> bool {
        let is_awaited = |state: &ExchangeState| {
            state.delivered.is_some() && !state.is_over && is_awaited(state)
        };
        let earlier = match self.exchange {
            Some(exchange) => exchange.earlier_exchanges(is_awaited),
            None => Vec::new(),
        };
        if earlier.is_empty() {
            return false;
        }
        let start = self.begin_waiting();
        let mut raced = false;
        for mut state in earlier {
            if !wait_until_over(&mut state, is_awaited).await {
                raced = true;
                break;
            }
        }
        self.end_waiting(start, raced);
        true
    }

    /// Tells those who wait for this request's answer that their time does not run now; returns when this began.
    pub(crate) fn begin_waiting(&self) -> Instant {
        self.update_exchange(|exchange| exchange.is_waiting = true);
        Instant::now()
    }

    /// Ends what [`Self::begin_waiting`] began; `raced` if an awaited answer was not recorded in time.
    pub(crate) fn end_waiting(&mut self, start: Instant, raced: bool) {
        self.update_exchange(|exchange| exchange.is_waiting = false);
        self.waited += start.elapsed();
        self.raced |= raced;
    }
}

/// Waits until an exchange is no longer awaited. Returns `false` if that took too long.
async fn wait_until_over(
    state: &mut watch::Receiver<ExchangeState>,
    is_awaited: impl Fn(&ExchangeState) -> bool,
) -> bool {
    loop {
        // In a loop at full speed each request waits for the one before it: the time of a long row is not that of one
        // answer. An error means that the exchange is gone.
        let turn = state.wait_for(|state| !is_awaited(state) || !state.is_waiting);
        if turn.await.map_or(true, |state| !is_awaited(&state)) {
            return true;
        }
        let change = state.wait_for(|state| !is_awaited(state) || state.is_waiting);
        match timeout(MAX_WAIT, change).await {
            Err(_) => return false,
            Ok(changed) if changed.as_ref().map_or(true, |state| !is_awaited(state)) => {
                return true;
            }
            Ok(_) => {}
        }
    }
}
