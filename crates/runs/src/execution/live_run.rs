//! The state of a run while a process drives it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_engine::{
    BranchClaim, Conversation, EngineError, LayerSession, RunStep, run_prefix,
};
use contexture_ir::{Item, Message, NodeId, Raw, Role, RunId};
use contexture_store::{NodeState, PathEnd, StateChange, StateKey, StateRequest};
use contexture_tools::LoadedToolkits;
use serde::Serialize;

use crate::agent::{Agent, Observer, RunEvent, RunEventKind};
use crate::channels::Channels;
use crate::context::{ContextParts, LastStep, RunContext};
use crate::error::RunError;
use crate::execution::next_step::NextStep;
use crate::execution::open_children::OpenChildren;
use crate::execution::resume_state::ResumeState;
use crate::execution::side_usage::{RunSideUsage, SideUsageLog};
use crate::limits::RunUsage;
use crate::record::{
    RUN_STATE_VERSION, RunEntry, RunRecord, RunStatus, StoredRunEnd, node_id, run_key,
    side_usage_key, value_key,
};
use crate::tasks::Abort;

/// Empty answers in a row that are given before the run ends with one.
const MAX_EMPTY_ANSWERS: usize = 3;

/// A run that a process drives: its conversation, layers, limits and position.
pub(crate) struct LiveRun {
    pub(crate) chat: Conversation,
    pub(crate) agent: Agent,
    pub(crate) id: RunId,
    pub(crate) record: RunRecord,
    pub(crate) session: LayerSession,
    pub(crate) next_step: NextStep,
    pub(crate) step: u32,
    pub(crate) usage: RunUsage,
    /// Usage of calls that are not answers of the run: calls by layers, and summaries.
    pub(crate) side_usage: Arc<RunSideUsage>,
    /// Time that earlier processes spent on the run.
    pub(crate) earlier_elapsed: Duration,
    pub(crate) resumed_at: Instant,
    pub(crate) abort: Abort,
    pub(crate) channels: Channels,
    /// What this run's open children have spent.
    pub(crate) children: Arc<OpenChildren>,
    pub(crate) loaded: LoadedToolkits,
    pub(crate) resume_state: ResumeState,
    /// The last answer of this process.
    pub(crate) last_step: Option<Arc<LastStep>>,
    /// Whether a layer stopped the run with the last answer.
    pub(crate) is_stopped: bool,
    /// Answers that this run had of its model, refused ones included.
    pub(crate) answers: u32,
    /// Answers that would have ended the run and were rejected by its output type or its verifier.
    pub(crate) rejected_answers: u32,
    /// Consecutive appends that failed because a layer's state was stale.
    pub(crate) append_conflicts: usize,
    /// The claim of the run's branch; `None` for a child that had ended before it was loaded.
    pub(crate) claim: Option<BranchClaim>,
    /// Whether an earlier driver worked on the run, which may have been superseded in the midst of a call.
    pub(crate) was_resumed: bool,
    /// Whether another turn was stored on the branch behind calls of the run that are still open.
    pub(crate) is_overtaken: bool,
    /// Whether the last drive ended with calls to decide.
    pub(crate) is_waiting: bool,
    /// How the run ended here.
    pub(crate) end: Option<StoredRunEnd>,
    /// How the run ended, if it had ended before it was loaded.
    pub(crate) stored_end: Option<StoredRunEnd>,
    pub(crate) durable_step_counts: BTreeMap<String, u32>,
    pub(crate) last_text: Option<String>,
    /// The text of each answer that called no tool.
    pub(crate) answer_texts: Vec<String>,
    /// The value that ended the run.
    pub(crate) value: Option<Raw>,
    /// Whether the stop condition has not been evaluated for the last answer yet.
    pub(crate) has_unchecked_answer: bool,
}

impl LiveRun {
    pub(crate) fn new(
        chat: Conversation,
        agent: Agent,
        id: RunId,
        record: RunRecord,
        mut session: LayerSession,
        abort: Abort,
        stored_side_usage: SideUsageLog,
    ) -> Result<Self, RunError> {
        agent.check_layer_names(session.layers())?;
        let engine = chat.engine().clone();
        let side_usage = Arc::new(RunSideUsage::new(
            engine,
            side_usage_key(id)?,
            stored_side_usage,
        ));
        chat.track_side_usage(&mut session, Arc::<RunSideUsage>::clone(&side_usage));
        let children = OpenChildren::new(id, record.budget, None);
        Ok(Self {
            chat,
            agent,
            id,
            record,
            session,
            children: Arc::new(children),
            answers: 0,
            rejected_answers: 0,
            next_step: NextStep::Ask { refused: 0 },
            step: 0,
            usage: RunUsage::default(),
            side_usage,
            earlier_elapsed: Duration::ZERO,
            resumed_at: Instant::now(),
            channels: Channels::default(),
            abort,
            loaded: LoadedToolkits::default(),
            resume_state: ResumeState::default(),
            last_step: None,
            is_stopped: false,
            append_conflicts: 0,
            claim: None,
            was_resumed: false,
            is_overtaken: false,
            is_waiting: false,
            end: None,
            stored_end: None,
            durable_step_counts: BTreeMap::new(),
            last_text: None,
            answer_texts: Vec::new(),
            value: None,
            has_unchecked_answer: false,
        })
    }

    /// Stores the entry, and then the input with the record and changes such as a first state of the program's own.
    pub(crate) async fn store_input(
        &mut self,
        input: Vec<Item>,
        state: impl IntoIterator<Item = StateChange>,
    ) -> Result<(), RunError> {
        // The entry first: a run that is on the tree is then always listed. A crash in between leaves an entry without
        // a run, which `resume` closes.
        let entry = RunEntry::new(self.id, &self.record, &self.chat.branch());
        entry.store_entry(&self.chat, self.id).await?;
        let put = StateChange::put_entry(
            run_key(self.id)?,
            RUN_STATE_VERSION,
            json_bytes(&self.record),
        );
        let first = node_id(self.id, "input", &[]);
        let place = |run: &Self, items| run.batch_of_items(first, items);
        let changes = std::iter::once(put).chain(state).collect();
        self.append_items(input, changes, place).await?;
        Ok(())
    }

    /// Usage of the run, children included.
    pub(crate) fn usage(&self) -> RunUsage {
        // A copy: side usage is kept per source, and added here only for the total.
        let mut spent = self.usage;
        for by_source in self.side_usage().values() {
            spent.roll_up(by_source);
        }
        // Time is not summed over parts: children run within the time of their parent.
        spent.elapsed = self.earlier_elapsed + self.resumed_at.elapsed();
        spent
    }

    /// Side usage by source: a layer's name, or `compaction` for summaries.
    pub(crate) fn side_usage(&self) -> BTreeMap<String, RunUsage> {
        self.side_usage.totals_by_source()
    }

    /// Sets the value that ends the run and returns the change to store; `None` if it has a value already.
    pub(crate) fn set_end_value(&mut self, value: Raw) -> Result<Option<StateChange>, RunError> {
        // The first value is kept: parallel tools may each try to end the run, and the outcome must not change
        // afterwards.
        if self.value.is_some() {
            return Ok(None);
        }
        let put = StateChange::put_entry(
            value_key(self.id)?,
            RUN_STATE_VERSION,
            value.get().as_bytes(),
        );
        self.value = Some(value);
        Ok(Some(put))
    }

    /// Sets the next step after an answer.
    pub(crate) fn set_next_step(&mut self, next: NextStep) {
        if let NextStep::End { text } = &next {
            self.last_text = Some(text.clone());
            self.answer_texts.push(text.clone());
        }
        self.next_step = next;
        // The loop evaluates the stop condition before it acts on the answer.
        self.has_unchecked_answer = true;
    }

    pub(crate) fn advance_to_step(&mut self, step: u32) {
        // The difference, because a resumed run may repeat a step that was counted already.
        self.usage.steps += u64::from(step.saturating_sub(self.step));
        self.step = step;
    }

    /// Checks that no other process has taken the run up.
    ///
    /// Ids of nodes derive from what they are about, so another driver stores the same nodes as this one would. An append that
    /// finds its nodes stored may therefore be the other's, whatever fence it names: it must not pass for this driver's own.
    pub(crate) async fn check_current(&self) -> Result<(), RunError> {
        match &self.claim {
            Some(claim) if !claim.is_current().await? => Err(RunError::Superseded { output: None }),
            _ => Ok(()),
        }
    }

    /// Releases the run's branch, so that another process may drive the run.
    pub(crate) async fn release_claim(&mut self) {
        if let Some(claim) = &mut self.claim
            && let Err(error) = claim.release().await
        {
            // It only delays the next driver: it is released with the next beat of this process.
            tracing::warn!(run = %self.id, %error, "the run's branch is released later");
        }
    }

    pub(crate) fn status(&self) -> RunStatus {
        match self.end.as_ref().or(self.stored_end.as_ref()) {
            Some(end) => end.status,
            None if self.is_waiting => RunStatus::Waiting,
            None => RunStatus::Running,
        }
    }

    /// Checks that the run has not ended.
    pub(crate) fn check_open(&self) -> Result<(), RunError> {
        match self.end.as_ref().or(self.stored_end.as_ref()) {
            None => Ok(()),
            Some(end) => Err(RunError::Ended {
                reason: match &end.reason {
                    None => format!("run {} has ended: {}", self.id, end.status.as_str()),
                    Some(reason) => reason.clone(),
                },
            }),
        }
    }

    /// Checks that another step may begin: the run is not aborted and its budget is not used up.
    pub(crate) fn check_budget(&self) -> Result<(), RunError> {
        self.check_open()?;
        self.abort.ensure_not_aborted()?;
        let usage = self.usage();
        self.record.budget.check_next(&usage)?;
        self.children.check_above(usage)?;
        Ok(())
    }

    /// Makes this run one of its parent's open children, with which it shares what is left of the parent's budget.
    pub(crate) fn join_parent(&mut self, of_parent: Arc<OpenChildren>) {
        let children = OpenChildren::new(self.id, self.record.budget, Some(of_parent));
        self.children = Arc::new(children);
    }

    /// Checks that the model may be asked once more.
    pub(crate) fn check_answers(&self) -> Result<(), RunError> {
        match self.agent.max_answers {
            Some(limit) if self.answers >= limit => Err(RunError::TooManyAnswers { limit }),
            _ => Ok(()),
        }
    }

    pub(crate) async fn load_state_value(
        &self,
        key: &StateKey,
    ) -> Result<Option<Arc<[u8]>>, RunError> {
        // Only this key: a run may have state for each of its children.
        let state = self.load_state_of(key.as_str().to_owned()).await?;
        Ok(state.loaded_value(key).cloned())
    }

    /// Loads the run's own state at the branch's head.
    pub(crate) async fn load_run_state(&self) -> Result<NodeState, RunError> {
        // Only this run's keys: the path may hold large states of layers.
        self.load_state_of(run_prefix(self.id)).await
    }

    async fn load_state_of(&self, prefix: String) -> Result<NodeState, RunError> {
        let request = StateRequest {
            prefix,
            ..StateRequest::all_entries(PathEnd::Branch(self.chat.branch()))
        };
        let store = self.chat.engine().store();
        let state = store
            .read_state(self.chat.owner(), self.chat.id(), request)
            .await;
        Ok(state.map_err(EngineError::from)?)
    }

    /// Whether the model may be asked again for an answer that was empty.
    pub(crate) fn may_ask_again(&self) -> bool {
        let empty = self.answer_texts.iter().rev();
        let empty = empty.take_while(|text| text.is_empty()).count();
        !self.is_stopped && empty < MAX_EMPTY_ANSWERS
    }

    /// Returns what work inside the run is given of it.
    pub(crate) fn context(&self) -> RunContext {
        let (observer, run, step) = (self.agent.observer.clone(), self.id, self.step);
        let progress = move |node, text| {
            let kind = || RunEventKind::Progress { node, text };
            notify(observer.as_ref(), run, step, kind);
        };
        RunContext::new(ContextParts {
            run,
            step,
            depth: self.record.depth,
            parent: self
                .record
                .parent
                .as_ref()
                .and_then(|parent| parent.parse().ok()),
            agent: self.record.agent.clone(),
            chat: self.chat.clone(),
            values: self.agent.values.clone(),
            abort: self.abort.clone(),
            channels: self.channels.bound_to(&self.abort),
            usage: self.usage(),
            last_step: self.last_step.clone(),
            progress: Arc::new(progress),
        })
    }

    pub(crate) const fn run_step(&self) -> RunStep {
        RunStep {
            run: self.id,
            step: self.step,
        }
    }

    /// Sends an event to the observer, if there is one.
    pub(crate) fn notify_observer(&self, event: impl FnOnce() -> RunEventKind) {
        notify(self.agent.observer.as_ref(), self.id, self.step, event);
    }

    pub(crate) fn last_head(&self) -> Option<NodeId> {
        self.session.context().head
    }
}

/// Sends an event to an observer, if there is one.
fn notify(
    observer: Option<&Arc<dyn Observer>>,
    run: RunId,
    step: u32,
    event: impl FnOnce() -> RunEventKind,
) {
    let Some(observer) = observer else {
        return;
    };
    let kind = event();
    let event = RunEvent { run, step, kind };
    // An observer's panic must not end the run it observes.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| observer.on_event(&event)));
    if outcome.is_err() {
        tracing::warn!(%run, "an observer of a run panicked");
    }
}

/// Serializes a value as JSON. Only types that cannot fail to serialize are passed here.
pub(crate) fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Builds a user message.
pub(crate) fn user_message(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}
