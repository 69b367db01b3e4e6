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
use contexture_store::{At, State, StateChange, StateKey, StateRequest};
use contexture_tools::Loaded;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::beside::{Beside, Books};
use super::config::Agent;
use super::ended::RunEnded;
use super::entry::{RunEntry, RunRecord, VERSION, head_text};
use super::event::{RunEvent, RunNews};
use super::keys::{beside_key, node_id, run_key, state_key, step_key, value_key};
use super::situation::Next;
use super::started::Left;
use crate::cancel::Abort;
use crate::channels::Channels;
use crate::error::RunError;
use crate::usage::Spent;

/// One execution of an agent over a conversation. It is driven by whoever holds it; [`Run::handle`] is for others.
pub struct Run {
    pub(crate) chat: Conversation,
    pub(crate) agent: Agent,
    pub(crate) id: RunId,
    pub(crate) record: RunRecord,
    pub(crate) session: LayerSession,
    pub(crate) next: Next,
    pub(crate) step: u32,
    pub(crate) spent: Spent,
    /// What was spent on the side.
    pub(crate) beside: Arc<Beside>,
    /// Time of earlier processes.
    pub(crate) before: Duration,
    pub(crate) since: Instant,
    pub(crate) abort: Abort,
    pub(crate) channels: Channels,
    pub(crate) loaded: Loaded,
    pub(crate) left: Left,
    /// How often in a row an append came too late.
    pub(crate) lost: usize,
    /// Set where it has ended before it was taken up.
    pub(crate) ended: Option<RunEnded>,
    pub(crate) steps: BTreeMap<String, u32>,
    pub(crate) last_text: Option<String>,
    /// The text of each answer that called nothing.
    pub(crate) texts: Vec<String>,
    /// The value it is ended with.
    pub(crate) value: Option<Raw>,
    /// Whether what is to stop the run has still to be asked about the last answer.
    pub(crate) answered: bool,
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
        let id = chat.engine().fresh_run();
        let record = RunRecord {
            agent: agent.name.clone(),
            parent: None,
            depth: 0,
            budget: agent.budget,
            began_ms: chat.engine().now_ms(),
            base: head_text(chat.head().await?),
        };
        let session = chat.layer_session(Some(record.place(id))).await?;
        let mut run = Self::new(
            chat.clone(),
            agent.clone(),
            id,
            record,
            session,
            Abort::new(),
            Books::new(),
        )?;
        run.enter(input.into_iter().collect()).await?;
        Ok(run)
    }

    pub(crate) fn new(
        chat: Conversation,
        agent: Agent,
        id: RunId,
        record: RunRecord,
        mut session: LayerSession,
        abort: Abort,
        books: Books,
    ) -> Result<Self, RunError> {
        let engine = chat.engine().clone();
        let beside = Arc::new(Beside::new(engine, beside_key(id)?, books));
        chat.count_in(&mut session, Arc::<Beside>::clone(&beside));
        Ok(Self {
            chat,
            agent,
            id,
            record,
            session,
            next: Next::Ask { refused: 0 },
            step: 0,
            spent: Spent::default(),
            beside,
            before: Duration::ZERO,
            since: Instant::now(),
            channels: Channels::default(),
            abort,
            loaded: Loaded::default(),
            left: Left::default(),
            lost: 0,
            ended: None,
            steps: BTreeMap::new(),
            last_text: None,
            texts: Vec::new(),
            value: None,
            answered: false,
        })
    }

    /// Stores the entry, and then the input with the record.
    pub(crate) async fn enter(&mut self, input: Vec<Item>) -> Result<(), RunError> {
        let entry = RunEntry::new(self.id, &self.record, &self.chat.branch());
        entry.put(&self.chat, self.id).await?;
        let put = StateChange::put(run_key(self.id)?, VERSION, json(&self.record));
        let first = node_id(self.id, "input", &[]);
        let place = |run: &Self, items| run.items(first, items);
        self.say(input, vec![put], place).await?;
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
    pub const fn steps(&self) -> u32 {
        self.step
    }

    /// What it spent, children included.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let mut spent = self.spent;
        for beside in self.spent_beside().values() {
            spent.roll_up(beside);
        }
        spent.elapsed = self.before + self.since.elapsed();
        spent
    }

    /// What of it was spent on the side, by who asked a model: a layer's name, or `compaction` for summaries.
    #[must_use]
    pub fn spent_beside(&self) -> BTreeMap<String, Spent> {
        self.beside.books()
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
    pub async fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, RunError> {
        let key = state_key(self.id)?;
        let Some(bytes) = self.value(&key).await? else {
            return Ok(None);
        };
        read("the state of the run", &bytes).map(Some)
    }

    /// Keeps something with the run.
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] for what cannot be written as JSON; or the store's.
    pub async fn set_state(&mut self, state: &impl Serialize) -> Result<(), RunError> {
        let raw = written("the state of the run", state)?;
        let put = StateChange::put(state_key(self.id)?, VERSION, raw.get().as_bytes());
        self.note("state", vec![put]).await
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
    pub async fn step<T, E, F>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T, RunError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Future<Output = Result<T, E>>,
    {
        self.may_go_on()?;
        let what = format!("what step {name:?} gave");
        let time = self.steps.get(name).copied().unwrap_or_default();
        let key = step_key(self.id, name, time)?;
        if let Some(bytes) = self.value(&key).await? {
            let done = read(&what, &bytes)?;
            self.steps.insert(name.to_owned(), time + 1);
            return Ok(done);
        }
        self.enter_step(self.step.saturating_add(1));
        let done = self.abort.guard(work()).await?;
        let done = done.map_err(|source| RunError::StepFailed {
            step: name.to_owned(),
            attempts: 1,
            source: source.into(),
        })?;
        let raw = written(&what, &done)?;
        let done = read(&what, raw.get().as_bytes())?;
        let put = StateChange::put(key, VERSION, raw.get().as_bytes());
        self.note("step", vec![put]).await?;
        self.steps.insert(name.to_owned(), time + 1);
        Ok(done)
    }

    /// Ends the run with a value, which its [turn](super::Turn::value) and lists of runs tell: whoever drives it finds it
    /// completed, and no model is asked again. Calls of the last answer are carried out before. The first value counts.
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] for what cannot be written as JSON; or the store's.
    pub async fn complete(&mut self, value: &impl Serialize) -> Result<(), RunError> {
        let raw = written("the value of the run", value)?;
        match self.completed(raw)? {
            Some(change) => self.note("value", vec![change]).await,
            None => Ok(()),
        }
    }

    /// Takes the value the run is ended with, to be stored; `None` where it has one.
    pub(crate) fn completed(&mut self, value: Raw) -> Result<Option<StateChange>, RunError> {
        if self.value.is_some() {
            return Ok(None);
        }
        let put = StateChange::put(value_key(self.id)?, VERSION, value.get().as_bytes());
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
    pub(crate) fn goes_on_with(&mut self, next: Next) {
        if let Next::End { text } = &next {
            self.last_text = Some(text.clone());
            self.texts.push(text.clone());
        }
        self.next = next;
        self.answered = true;
    }

    pub(crate) fn enter_step(&mut self, step: u32) {
        self.spent.steps += u64::from(step.saturating_sub(self.step));
        self.step = step;
    }

    /// Whether another step may begin.
    pub(crate) fn may_go_on(&self) -> Result<(), RunError> {
        self.abort.check()?;
        self.record.budget.check_next(&self.spent())?;
        Ok(())
    }

    pub(crate) async fn value(&self, key: &StateKey) -> Result<Option<Arc<[u8]>>, RunError> {
        let state = self.run_state().await?;
        Ok(state.value(key).cloned())
    }

    /// What hangs off the head of the run's own.
    pub(crate) async fn run_state(&self) -> Result<State, RunError> {
        let request = StateRequest {
            prefix: run_prefix(self.id),
            ..StateRequest::all(At::Branch(self.chat.branch()))
        };
        let store = self.chat.engine().store();
        let state = store
            .state(self.chat.owner(), self.chat.id(), request)
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
    pub(crate) fn tell(&self, news: impl FnOnce() -> RunNews) {
        let Some(observer) = &self.agent.observer else {
            return;
        };
        let event = RunEvent {
            run: self.id,
            step: self.step,
            news: news(),
        };
        // One that watches cannot end what it watches.
        let seen = std::panic::catch_unwind(AssertUnwindSafe(|| observer.see(&event)));
        if seen.is_err() {
            tracing::warn!(run = %self.id, "an observer of a run panicked");
        }
    }

    pub(crate) fn last_head(&self) -> Option<NodeId> {
        self.session.context().head
    }
}

/// JSON of what a program gives.
fn written(what: &str, value: &impl Serialize) -> Result<Raw, RunError> {
    Raw::from_value(value).map_err(|error| RunError::ItemMismatch {
        what: what.to_owned(),
        expected: "what can be written as JSON".to_owned(),
        found: error.to_string(),
    })
}

/// What a program gave, out of its JSON.
fn read<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(bytes).map_err(|error| RunError::ItemMismatch {
        what: what.to_owned(),
        expected: std::any::type_name::<T>().to_owned(),
        found: error.to_string(),
    })
}

/// JSON of what can be written.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// What a person says.
pub(crate) fn said_by_user(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("chat", &self.chat)
            .field("step", &self.step)
            .field("next", &self.next)
            .field("spent", &self.spent)
            .finish_non_exhaustive()
    }
}
