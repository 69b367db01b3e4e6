//! A run: the handle that goes on, and the one that looks on.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_engine::{
    Conversation, EngineError, LayerHandle, LayerSession, RunStep, run_prefix,
};
use contexture_ir::{Item, Message, NodeId, Raw, Role, RunId};
use contexture_layers::Layer;
use contexture_store::{NodeState, PathEnd, StateChange, StateKey, StateRequest};
use contexture_tools::LoadedToolkits;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::beside::{RunSideUsage, SideUsageLog};
use super::config::Agent;
use super::ended::StoredRunEnd;
use super::entry::{RUN_STATE_VERSION, RunEntry, RunRecord, head_to_string};
use super::event::{RunEvent, RunEventKind};
use super::keys::{node_id, run_key, side_usage_key, state_key, step_key, value_key};
use super::situation::NextStep;
use super::started::ResumeState;
use crate::cancel::Abort;
use crate::channels::Channels;
use crate::error::RunError;
use crate::usage::RunUsage;

/// One execution of an agent over a conversation. It is driven by whoever holds it; [`Run::handle`] is for others.
pub struct Run {
    pub(crate) chat: Conversation,
    pub(crate) agent: Agent,
    pub(crate) id: RunId,
    pub(crate) record: RunRecord,
    pub(crate) session: LayerSession,
    pub(crate) next_step: NextStep,
    pub(crate) step: u32,
    pub(crate) usage: RunUsage,
    /// What was spent on the side.
    pub(crate) side_usage: Arc<RunSideUsage>,
    /// Time of earlier processes.
    pub(crate) earlier_elapsed: Duration,
    pub(crate) resumed_at: Instant,
    pub(crate) abort: Abort,
    pub(crate) channels: Channels,
    pub(crate) loaded: LoadedToolkits,
    pub(crate) resume_state: ResumeState,
    /// How often in a row an append came too late.
    pub(crate) append_conflicts: usize,
    /// Set where it has ended before it was taken up.
    pub(crate) stored_end: Option<StoredRunEnd>,
    pub(crate) durable_step_counts: BTreeMap<String, u32>,
    pub(crate) last_text: Option<String>,
    /// The text of each answer that called nothing.
    pub(crate) answer_texts: Vec<String>,
    /// The value it is ended with.
    pub(crate) value: Option<Raw>,
    /// Whether what is to stop the run has still to be asked about the last answer.
    pub(crate) has_unchecked_answer: bool,
}

/// A run, for those who look on: its id, its channels, a way to call it off.
#[derive(Clone, Debug)]
pub struct RunHandle {
    id: RunId,
    abort: Abort,
    channels: Channels,
}

impl RunHandle {
    /// The run's id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.id
    }

    /// Calls the run off, and its children: the call in flight is cut, what is finished is kept.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        self.abort.abort(reason);
    }

    /// The channels of the run's tree.
    #[must_use]
    pub const fn channels(&self) -> &Channels {
        &self.channels
    }
}

impl Run {
    /// Begins a run: what a person or a program says goes behind whatever the branch ends with, and the run's record
    /// with it, in one transaction.
    ///
    /// # Errors
    /// [`RunError::Engine`].
    pub async fn begin(
        chat: &Conversation,
        agent: &Agent,
        input: impl IntoIterator<Item = Item>,
    ) -> Result<Self, RunError> {
        let id = chat.engine().new_run_id();
        let record = RunRecord {
            agent: agent.name.clone(),
            parent: None,
            depth: 0,
            budget: agent.budget,
            began_ms: chat.engine().now_ms(),
            base: head_to_string(chat.head().await?),
        };
        let session = chat.layer_session(Some(record.run_scope(id))).await?;
        let mut run = Self::new(
            chat.clone(),
            agent.clone(),
            id,
            record,
            session,
            Abort::new(),
            SideUsageLog::new(),
        )?;
        run.store_input(input.into_iter().collect()).await?;
        Ok(run)
    }

    pub(crate) fn new(
        chat: Conversation,
        agent: Agent,
        id: RunId,
        record: RunRecord,
        mut session: LayerSession,
        abort: Abort,
        books: SideUsageLog,
    ) -> Result<Self, RunError> {
        let engine = chat.engine().clone();
        let beside = Arc::new(RunSideUsage::new(engine, side_usage_key(id)?, books));
        chat.track_side_usage(&mut session, Arc::<RunSideUsage>::clone(&beside));
        Ok(Self {
            chat,
            agent,
            id,
            record,
            session,
            next_step: NextStep::Ask { refused: 0 },
            step: 0,
            usage: RunUsage::default(),
            side_usage: beside,
            earlier_elapsed: Duration::ZERO,
            resumed_at: Instant::now(),
            channels: Channels::default(),
            abort,
            loaded: LoadedToolkits::default(),
            resume_state: ResumeState::default(),
            append_conflicts: 0,
            stored_end: None,
            durable_step_counts: BTreeMap::new(),
            last_text: None,
            answer_texts: Vec::new(),
            value: None,
            has_unchecked_answer: false,
        })
    }

    /// Stores the entry, and then the input with the record.
    pub(crate) async fn store_input(&mut self, input: Vec<Item>) -> Result<(), RunError> {
        let entry = RunEntry::new(self.id, &self.record, &self.chat.branch());
        entry.store_entry(&self.chat, self.id).await?;
        let put = StateChange::put_entry(
            run_key(self.id)?,
            RUN_STATE_VERSION,
            json_bytes(&self.record),
        );
        let first = node_id(self.id, "input", &[]);
        let place = |run: &Self, items| run.batch_of_items(first, items);
        self.append_items(input, vec![put], place).await?;
        Ok(())
    }

    /// The run's id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.id
    }

    /// The run above it.
    #[must_use]
    pub fn parent(&self) -> Option<RunId> {
        self.record.parent.as_ref()?.parse().ok()
    }

    /// How many ancestors it has.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        self.record.depth
    }

    /// How many steps it has taken.
    #[must_use]
    pub const fn step_count(&self) -> u32 {
        self.step
    }

    /// What it spent, children included.
    #[must_use]
    pub fn usage(&self) -> RunUsage {
        let mut spent = self.usage;
        for beside in self.side_usage().values() {
            spent.roll_up(beside);
        }
        spent.elapsed = self.earlier_elapsed + self.resumed_at.elapsed();
        spent
    }

    /// What of it was spent on the side, by who asked a model: a layer's name, or `compaction` for summaries.
    #[must_use]
    pub fn side_usage(&self) -> BTreeMap<String, RunUsage> {
        self.side_usage.totals_by_source()
    }

    /// The conversation, on the run's branch.
    #[must_use]
    pub const fn conversation(&self) -> &Conversation {
        &self.chat
    }

    /// For those who look on.
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        RunHandle {
            id: self.id,
            abort: self.abort.clone(),
            channels: self.channels.clone(),
        }
    }

    /// Its layers, in the states they have now.
    #[must_use]
    pub const fn layers(&self) -> &LayerSession {
        &self.session
    }

    /// The layer of this type, for programs; it sees what is stored.
    ///
    /// # Errors
    /// [`RunError::Engine`] where there is none.
    pub fn layer<L: Layer>(&self) -> Result<LayerHandle<L>, RunError> {
        Ok(self.chat.layer::<L>()?)
    }

    /// What the program keeps with the run, as it is stored. It ends with the run.
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] where it is of another type; or the store's.
    pub async fn load_state<T: DeserializeOwned>(&self) -> Result<Option<T>, RunError> {
        let key = state_key(self.id)?;
        let Some(bytes) = self.load_state_value(&key).await? else {
            return Ok(None);
        };
        from_json("the state of the run", &bytes).map(Some)
    }

    /// Keeps something with the run.
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] for what cannot be written as JSON; or the store's.
    pub async fn store_state(&mut self, state: &impl Serialize) -> Result<(), RunError> {
        let raw = to_json("the state of the run", state)?;
        let put =
            StateChange::put_entry(state_key(self.id)?, RUN_STATE_VERSION, raw.get().as_bytes());
        self.append_state("state", vec![put]).await
    }

    /// A step of the program's own, done once: a run that is resumed takes what it gave then.
    ///
    /// `name` says which it is; the same name again is the next of that name, and after a failure another try. What it
    /// gives is kept as JSON, and given as it is read from there.
    ///
    /// # Errors
    /// [`RunError::StepFailed`] with the step's own error, which is not kept; [`RunError::ItemMismatch`] where what it
    /// gave cannot be written as JSON and read again, which is not kept either, or is kept as another type;
    /// [`RunError::Cancelled`], [`RunError::BudgetExceeded`]; or the store's.
    pub async fn run_durable_step<T, E, F>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T, RunError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Future<Output = Result<T, E>>,
    {
        self.check_budget()?;
        let what = format!("what step {name:?} gave");
        let time = self
            .durable_step_counts
            .get(name)
            .copied()
            .unwrap_or_default();
        let key = step_key(self.id, name, time)?;
        if let Some(bytes) = self.load_state_value(&key).await? {
            let done = from_json(&what, &bytes)?;
            self.durable_step_counts.insert(name.to_owned(), time + 1);
            return Ok(done);
        }
        self.advance_to_step(self.step.saturating_add(1));
        let done = self.abort.run_until_aborted(work()).await?;
        let done = done.map_err(|source| RunError::StepFailed {
            step: name.to_owned(),
            attempts: 1,
            source: source.into(),
        })?;
        let raw = to_json(&what, &done)?;
        let done = from_json(&what, raw.get().as_bytes())?;
        let put = StateChange::put_entry(key, RUN_STATE_VERSION, raw.get().as_bytes());
        self.append_state("step", vec![put]).await?;
        self.durable_step_counts.insert(name.to_owned(), time + 1);
        Ok(done)
    }

    /// Ends the run with a value, which its [turn](super::Turn::value) and lists of runs tell: whoever drives it finds it
    /// completed, and no model is asked again. Calls of the last answer are carried out before. The first value counts.
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] for what cannot be written as JSON; or the store's.
    pub async fn complete_with_value(&mut self, value: &impl Serialize) -> Result<(), RunError> {
        let raw = to_json("the value of the run", value)?;
        match self.set_end_value(raw)? {
            Some(change) => self.append_state("value", vec![change]).await,
            None => Ok(()),
        }
    }

    /// Takes the value the run is ended with, to be stored; `None` where it has one.
    pub(crate) fn set_end_value(&mut self, value: Raw) -> Result<Option<StateChange>, RunError> {
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

    /// Marks where the run stands, under a name.
    ///
    /// # Errors
    /// The engine's.
    pub async fn checkpoint(&self, name: &str) -> Result<(), RunError> {
        self.chat.checkpoint(name).await?;
        Ok(())
    }

    /// What comes next, after an answer.
    pub(crate) fn set_next_step(&mut self, next: NextStep) {
        if let NextStep::End { text } = &next {
            self.last_text = Some(text.clone());
            self.answer_texts.push(text.clone());
        }
        self.next_step = next;
        self.has_unchecked_answer = true;
    }

    pub(crate) fn advance_to_step(&mut self, step: u32) {
        self.usage.steps += u64::from(step.saturating_sub(self.step));
        self.step = step;
    }

    /// Whether another step may begin.
    pub(crate) fn check_budget(&self) -> Result<(), RunError> {
        self.abort.ensure_not_aborted()?;
        self.record.budget.check_next(&self.usage())?;
        Ok(())
    }

    pub(crate) async fn load_state_value(
        &self,
        key: &StateKey,
    ) -> Result<Option<Arc<[u8]>>, RunError> {
        let state = self.load_run_state().await?;
        Ok(state.loaded_value(key).cloned())
    }

    /// What hangs off the head of the run's own.
    pub(crate) async fn load_run_state(&self) -> Result<NodeState, RunError> {
        let request = StateRequest {
            prefix: run_prefix(self.id),
            ..StateRequest::all_entries(PathEnd::Branch(self.chat.branch()))
        };
        let store = self.chat.engine().store();
        let state = store
            .read_state(self.chat.owner(), self.chat.id(), request)
            .await;
        Ok(state.map_err(EngineError::from)?)
    }

    pub(crate) const fn run_step(&self) -> RunStep {
        RunStep {
            run: self.id,
            step: self.step,
        }
    }

    /// Tells those who watch.
    pub(crate) fn notify_observer(&self, news: impl FnOnce() -> RunEventKind) {
        let Some(observer) = &self.agent.observer else {
            return;
        };
        let event = RunEvent {
            run: self.id,
            step: self.step,
            news: news(),
        };
        // One that watches cannot end what it watches.
        let seen = std::panic::catch_unwind(AssertUnwindSafe(|| observer.on_event(&event)));
        if seen.is_err() {
            tracing::warn!(run = %self.id, "an observer of a run panicked");
        }
    }

    pub(crate) fn last_head(&self) -> Option<NodeId> {
        self.session.context().head
    }
}

/// JSON of what a program gives.
fn to_json(what: &str, value: &impl Serialize) -> Result<Raw, RunError> {
    Raw::from_value(value).map_err(|error| RunError::ItemMismatch {
        what: what.to_owned(),
        expected: "what can be written as JSON".to_owned(),
        found: error.to_string(),
    })
}

/// What a program gave, out of its JSON.
fn from_json<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(bytes).map_err(|error| RunError::ItemMismatch {
        what: what.to_owned(),
        expected: std::any::type_name::<T>().to_owned(),
        found: error.to_string(),
    })
}

/// JSON of what can be written.
pub(crate) fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// What a person says.
pub(crate) fn user_message(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("chat", &self.chat)
            .field("step", &self.step)
            .field("next", &self.next_step)
            .field("spent", &self.usage)
            .finish_non_exhaustive()
    }
}
