//! Exchanges of other processes on a shared store: marks of those under way, and waiting for their answers.
//!
//! The request of an exchange is stored with a mark, under a key of what it asks; the answer is stored with its removal. A
//! client gets the last of an answer after its request is stored. So whoever has an answer that another process has not
//! recorded yet finds the mark, whatever process is asked next, and waits until it is gone.
//!
//! A mark decides nothing: what continues what is decided by recorded answers only.
//!
//! Not here: exchanges of this process (`exchange`), which processes live (`presence`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contexture_ir::{ConversationId, Owner, PathHash};
use contexture_store::{
    Error as StoreError, ExchangeChange, ExchangeMark, PendingExchange, Processes,
};

use super::candidates::CandidateFinder;
use super::keys::PathKeys;
use super::request_history::RequestHistory;
use crate::error::EngineError;
use crate::exchange::{AnswerWait, Exchange, MAX_WAIT};
use crate::handle::{Conversation, Engine};

/// Pauses between two looks at the marks: the first is short, because recording an answer takes milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// Questions of earlier exchanges that are looked up, the latest first: whoever goes on holds the answer to one of them.
const MAX_QUESTIONS: usize = 32;

/// The mark of an exchange of this process. One that is still stored when this is dropped is removed with the next beat.
#[derive(Debug)]
pub(super) struct StoredMark {
    engine: Engine,
    owner: Owner,
    conversation: ConversationId,
    mark: ExchangeMark,
    is_stored: AtomicBool,
}

impl StoredMark {
    /// Prepares the mark of an exchange that asks `question`; `None` if no other process uses the store.
    pub(super) async fn prepare(
        chat: &Conversation,
        keys: &PathKeys,
        question: PathHash,
        exchange: Option<&Exchange>,
    ) -> Result<Option<Arc<Self>>, EngineError> {
        let engine = chat.engine();
        if exchange.is_none() || engine.shared_processes().is_none() {
            return Ok(None);
        }
        // Before the mark: one of an unknown process is taken for that of a dead one.
        engine.presence.ensure_registered(engine.store()).await?;
        Ok(Some(Arc::new(Self {
            engine: engine.clone(),
            owner: chat.owner().clone(),
            conversation: chat.id().clone(),
            mark: ExchangeMark {
                hash: keys.exchange_key(question),
                process: engine.presence.id(),
                // Of this attempt to store the request: what is left of an earlier one must not take this one's mark away.
                number: engine.presence.next_mark_number(),
            },
            is_stored: AtomicBool::new(false),
        })))
    }

    /// Returns the change that stores the mark. From now on it may be stored.
    pub(super) fn begin(&self) -> ExchangeChange {
        self.is_stored.store(true, Ordering::Relaxed);
        ExchangeChange::Begin(self.mark)
    }

    /// Stores the mark of a request that appends nothing.
    pub(super) async fn store_alone(&self) -> Result<(), EngineError> {
        self.change(self.begin()).await
    }

    /// Returns the change that removes the mark, if it is stored.
    pub(super) fn end(&self) -> Option<ExchangeChange> {
        let is_stored = self.is_stored.load(Ordering::Relaxed);
        is_stored.then_some(ExchangeChange::End(self.mark))
    }

    /// Notes that the mark was removed, by an append or with its conversation.
    pub(super) fn set_ended(&self) {
        self.is_stored.store(false, Ordering::Relaxed);
    }

    /// Removes the mark of a request that gets no answer.
    pub(super) async fn remove(&self) -> Result<(), EngineError> {
        if let Some(end) = self.end() {
            self.change(end).await?;
            self.set_ended();
        }
        Ok(())
    }

    async fn change(&self, change: ExchangeChange) -> Result<(), EngineError> {
        if let Some(processes) = self.engine.shared_processes() {
            processes
                .change_exchange(&self.owner, &self.conversation, change)
                .await?;
        }
        Ok(())
    }
}

impl Drop for StoredMark {
    fn drop(&mut self) {
        if *self.is_stored.get_mut() {
            let (owner, conversation) = (self.owner.clone(), self.conversation.clone());
            self.engine
                .presence
                .leave_mark(owner, conversation, self.mark);
        }
    }
}

/// Which answers of other processes are awaited.
#[derive(Debug)]
pub(super) struct AwaitedAnswers {
    /// What their exchanges ask, as keys; `None` for any exchange of the owner.
    pub(super) questions: Option<Vec<PathHash>>,
    /// Only those of this conversation.
    pub(super) conversation: Option<ConversationId>,
    /// The key under which the awaited answer is found once it is recorded, where that is known.
    pub(super) answer: Option<PathHash>,
}

impl AwaitedAnswers {
    /// The answers that a history holds; `None` if it holds none.
    pub(super) fn in_history(sent: &RequestHistory<'_>, keys: &PathKeys) -> Option<Self> {
        let questions = sent.answered_questions(MAX_QUESTIONS);
        let questions = questions.map(|hash| keys.exchange_key(hash));
        let questions: Vec<PathHash> = questions.collect();
        (!questions.is_empty()).then(|| Self {
            questions: Some(questions),
            conversation: None,
            answer: sent.last_answer_hash().map(|hash| keys.answer_key(hash)),
        })
    }
}

/// Waits for answers that other processes are about to record.
#[derive(Clone, Copy)]
pub(super) struct SharedExchanges<'a> {
    engine: &'a Engine,
    owner: &'a Owner,
    processes: &'a dyn Processes,
}

impl<'a> SharedExchanges<'a> {
    /// Returns what is shared with other processes; `None` if nothing is.
    pub(super) fn of_engine(engine: &'a Engine, owner: &'a Owner) -> Option<Self> {
        let processes = engine.shared_processes()?;
        Some(Self {
            engine,
            owner,
            processes,
        })
    }

    /// Waits until the awaited answers of live processes are recorded. Returns whether there was one.
    pub(super) async fn wait_for_answers(
        &self,
        awaited: &AwaitedAnswers,
        finder: &CandidateFinder<'_>,
        wait: &mut AnswerWait<'_>,
    ) -> Result<bool, EngineError> {
        // Only exchanges that are there now: later ones are no earlier arrivals.
        let mut pending = self.find_pending(awaited).await?;
        if pending.is_empty() {
            return Ok(false);
        }
        let start = wait.begin_waiting();
        let mut pause = FIRST_PAUSE;
        let waited = loop {
            // Another exchange that asks the same may go on for long; its twin's answer is enough.
            let is_recorded = match awaited.answer {
                Some(key) => finder.has_place(key).await,
                None => Ok(false),
            };
            match is_recorded {
                Ok(false) if pending.is_empty() => break Ok(false),
                Ok(false) if start.elapsed() >= MAX_WAIT => break Ok(true),
                Ok(false) => {}
                Ok(true) => break Ok(false),
                Err(error) => break Err(error),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
            match self.find_pending(awaited).await {
                Ok(now) => pending.retain(|mark| now.contains(mark)),
                Err(error) => break Err(error.into()),
            }
        };
        wait.end_waiting(start, waited.as_ref().is_ok_and(|raced| *raced));
        waited.map(|_| true)
    }

    /// The awaited exchanges of other live processes.
    async fn find_pending(
        &self,
        awaited: &AwaitedAnswers,
    ) -> Result<BTreeSet<ExchangeMark>, StoreError> {
        let presence = &self.engine.presence;
        let questions = awaited.questions.as_deref();
        let found = self.processes.find_exchanges(self.owner, questions).await?;
        let is_awaited = |found: &&PendingExchange| {
            // Those of this process are waited for by its registry.
            found.mark.process != presence.id()
                && awaited
                    .conversation
                    .as_ref()
                    .is_none_or(|id| *id == found.conversation)
        };
        let marks: BTreeSet<ExchangeMark> = found
            .iter()
            .filter(is_awaited)
            .map(|found| found.mark)
            .collect();
        let holders = marks.iter().map(|mark| mark.process).collect();
        let live = presence.find_live(self.processes, &holders).await?;
        let marks = marks.into_iter();
        Ok(marks.filter(|mark| live.contains(&mark.process)).collect())
    }
}
