//! The handle by which a run is driven: [`Run`].
//!
//! Everything here delegates: `execution` holds what a run knows, `steps` does the work. Not here: the handle for everybody
//! else (`run_handle`).

use std::collections::BTreeMap;
use std::fmt;

use contexture_engine::{Conversation, LayerHandle, LayerSession};
use contexture_ir::{Item, Raw, RunId};
use contexture_layers::{ChildResult, Layer};
use contexture_store::StateChange;
use contexture_telemetry::{record_error, step_span};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use crate::agent::{Agent, SubAgent, Turn};
use crate::context::RunContext;
use crate::error::RunError;
use crate::execution::{LiveRun, user_message};
use crate::limits::RunUsage;
use crate::record::{RUN_STATE_VERSION, RunStatus, state_key};
use crate::run_handle::RunHandle;
use crate::steps::{begin, drive, join_child, resume, spawn_child};

/// One execution of an agent over a conversation. Its owner drives it; [`Run::handle`] is for everybody else.
pub struct Run {
    live: LiveRun,
}

impl Run {
    /// Starts a run: writes its entry, then appends the input together with the run's record in one transaction.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// assert_eq!(run.drive().await?.text, "Sunny.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The branch is claimed for this process until the run ends or waits, or is dropped. A run of the branch that was interrupted
    /// is abandoned.
    ///
    /// # Errors
    /// [`RunError::Busy`] while another run works on the branch; [`RunError::Unfinished`] if one waits there for a decision;
    /// [`RunError::Engine`].
    pub async fn begin(
        chat: &Conversation,
        agent: &Agent,
        input: impl IntoIterator<Item = Item>,
    ) -> Result<Self, RunError> {
        let live = begin(chat, agent, input.into_iter().collect()).await?;
        Ok(Self { live })
    }

    /// The run's id.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let stored = contexture_runs::RunEntry::load(&chat, run.id()).await?;
    /// assert_eq!(stored.map(|entry| entry.agent), Some("guide".to_owned()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.live.id
    }

    /// Returns the parent run, if there is one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// assert_eq!(run.parent(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn parent(&self) -> Option<RunId> {
        self.live.record.parent.as_ref()?.parse().ok()
    }

    /// Returns the number of its ancestors.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// assert_eq!(run.depth(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn depth(&self) -> u32 {
        self.live.record.depth
    }

    /// Returns the number of steps taken.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.drive().await?;
    /// assert_eq!(run.step_count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn step_count(&self) -> u32 {
        self.live.step
    }

    /// The usage of the run, children included.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.drive().await?;
    /// assert_eq!(run.usage().responses, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn usage(&self) -> RunUsage {
        self.live.usage()
    }

    /// Returns the usage that belongs to no answer of the run, by source: a layer's id, or `compaction`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.drive().await?;
    /// assert!(run.side_usage().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn side_usage(&self) -> BTreeMap<String, RunUsage> {
        self.live.side_usage()
    }

    /// Returns the run's status: [`RunStatus::Waiting`] between a [`drive`](Self::drive) that found calls to decide and the
    /// next one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, RunStatus};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// assert_eq!(run.status(), RunStatus::Running);
    /// run.drive().await?;
    /// assert_eq!(run.status(), RunStatus::Completed);
    /// assert!(run.drive().await.is_err(), "it has ended");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.live.status()
    }

    /// Returns the value that ends the run, once it is set.
    #[must_use]
    pub const fn value(&self) -> Option<&Raw> {
        self.live.value.as_ref()
    }

    /// Returns the conversation, on the run's branch.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// assert_eq!(run.conversation().id(), chat.id());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn conversation(&self) -> &Conversation {
        &self.live.chat
    }

    /// Returns a handle for observers.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let handle = run.handle();
    /// handle.abort("the user closed the window");
    /// assert!(run.drive().await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        RunHandle::of(&self.live)
    }

    /// Returns what work inside the run is given of it, for a step of the program.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let context = run.context();
    /// let whose = run.run_durable_step("look", || async move {
    ///     context.report_progress("looking");
    ///     Ok::<_, std::io::Error>(context.owner().to_string())
    /// });
    /// assert_eq!(whose.await?, "ada");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn context(&self) -> RunContext {
        self.live.context()
    }

    /// Returns its layers with their current states.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let session = run.layers();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn layers(&self) -> &LayerSession {
        &self.live.session
    }

    /// Returns a handle on the layer of this type, for programs; it sees stored state.
    ///
    /// # Errors
    /// [`RunError::Engine`] if there is no such layer.
    pub fn layer<L: Layer>(&self) -> Result<LayerHandle<L>, RunError> {
        Ok(self.live.chat.layer::<L>()?)
    }

    /// Loads the program's own state of the run. It is removed when the run ends.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.store_state(&"half done").await?;
    /// assert_eq!(run.load_state::<String>().await?.as_deref(), Some("half done"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] if the stored state is of another type; or an error of the store.
    pub async fn load_state<T: DeserializeOwned>(&self) -> Result<Option<T>, RunError> {
        self.live.check_open()?;
        let key = state_key(self.live.id)?;
        let Some(bytes) = self.live.load_state_value(&key).await? else {
            return Ok(None);
        };
        from_json("the state of the run", &bytes).map(Some)
    }

    /// Stores a value with the run, as the program's own state.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.store_state(&["first part", "second part"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] if it cannot be written as JSON; or an error of the store.
    pub async fn store_state(&mut self, state: &impl Serialize) -> Result<(), RunError> {
        let raw = to_json("the state of the run", state)?;
        let put = StateChange::put_entry(
            state_key(self.live.id)?,
            RUN_STATE_VERSION,
            raw.get().as_bytes(),
        );
        self.live.append_state("state", vec![put]).await
    }

    /// Runs a step of the program once: a resumed run returns the stored result instead.
    ///
    /// `name` identifies the step; calls with the same name are numbered in order, and a failed one is tried again. The
    /// result is stored as JSON, and returned as it is read from there. It may have as many bytes as an item of the store,
    /// 16 MiB by default. A step costs the same however many were before it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let page: String = run.run_durable_step("fetch", || async { Ok::<_, std::io::Error>("text".to_owned()) }).await?;
    /// assert_eq!(page, "text");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::StepFailed`] with the step's own error, which is not stored; [`RunError::ItemMismatch`] if the
    /// result cannot be written as JSON and read again or is too large, in which case it is not stored either, or if the
    /// stored result is of another type; [`RunError::Ended`] behind the end of the run or its final value; [`RunError::Cancelled`], [`RunError::BudgetExceeded`]; or an error of the store.
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
        self.live.check_budget()?;
        let what = format!("what step {name:?} gave");
        let time = self
            .live
            .durable_step_counts
            .get(name)
            .copied()
            .unwrap_or_default();
        if let Some(stored) = self.live.load_step_result(name, time).await? {
            let done = from_json(&what, stored.get().as_bytes())?;
            self.live
                .durable_step_counts
                .insert(name.to_owned(), time + 1);
            return Ok(done);
        }
        // A resumed program takes what it had; behind the value that ends the run nothing new begins.
        if self.live.value.is_some() {
            return Err(RunError::Ended {
                reason: format!(
                    "run {} has its value: step {name:?} is not run",
                    self.live.id
                ),
            });
        }
        self.live.advance_to_step(self.live.step.saturating_add(1));
        let span = step_span(&self.live.id.to_string(), name);
        let working = self.live.abort.run_until_aborted(work());
        let done = working.instrument(span.clone()).await;
        let done = done.map_err(RunError::from).and_then(|done| {
            done.map_err(|source| RunError::StepFailed {
                step: name.to_owned(),
                attempts: 1,
                source: source.into(),
            })
        });
        let done = done.inspect_err(|error| record_error(&span, error.kind()))?;
        let raw = to_json(&what, &done)?;
        // Returned as read back: the first run and a resumed one must see the same value.
        let done = from_json(&what, raw.get().as_bytes())?;
        self.live.store_step_result(name, time, raw).await?;
        self.live
            .durable_step_counts
            .insert(name.to_owned(), time + 1);
        Ok(done)
    }

    /// Ends the run with a value, shown in its [turn](crate::Turn::value) and in lists of runs: the run then completes
    /// without another model call. Calls of the last answer are run first. The first value is kept.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.complete_with_value(&42).await?;
    /// let turn = run.drive().await?;
    /// assert_eq!(turn.value.map(|value| value.get().to_owned()).as_deref(), Some("42"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] if the value cannot be written as JSON; or an error of the store.
    pub async fn complete_with_value(&mut self, value: &impl Serialize) -> Result<(), RunError> {
        let raw = to_json("the value of the run", value)?;
        match self.live.set_end_value(raw)? {
            Some(change) => self.live.append_state("value", vec![change]).await,
            None => Ok(()),
        }
    }

    /// Sets a checkpoint of this name at the run's head.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// run.checkpoint("before the answer").await?;
    /// run.drive().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An error of the engine.
    pub async fn checkpoint(&self, name: &str) -> Result<(), RunError> {
        self.live.chat.checkpoint(name).await?;
        Ok(())
    }

    /// Drives the run until it ends or waits for a person.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let turn = run.drive().await?;
    /// assert_eq!(turn.text, "Sunny.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError`]. A run that failed or was aborted has ended, and everything it finished is stored; if the store
    /// fails the run stays open and can be [resumed](Self::resume).
    pub async fn drive(&mut self) -> Result<Turn, RunError> {
        drive(&mut self.live).await
    }

    /// Resumes an open run where it was interrupted, or where it waits. `chat` is any handle on its conversation. What is set on a handle on
    /// the run's branch, such as fragments and call context, is said as at the beginning of the run; a handle on another branch is
    /// only used to find the conversation.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let id = run.id();
    /// drop(run);
    /// // Perhaps in another process.
    /// let mut run = Run::resume(&chat, id, &agent).await?;
    /// assert_eq!(run.drive().await?.text, "Sunny.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::ItemMismatch`] if the run does not exist or has ended; [`RunError::Busy`] while it is being driven, by another
    /// process or in this one; [`RunError::Agent`] if it belongs to an agent of another name; [`RunError::Ended`] if another turn
    /// was stored behind its open calls; [`RunError::Engine`].
    pub async fn resume(chat: &Conversation, id: RunId, agent: &Agent) -> Result<Self, RunError> {
        let live = resume(chat, id, agent).await?;
        Ok(Self { live })
    }

    /// Starts a child run, or resumes the one with this name: on a branch of its own, with at most the budget that this
    /// run has left. Drive it, then pass its outcome to [`Run::join_child`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let helper = SubAgent::new(agent.clone(), "Looks up the weather.");
    /// let mut child = run.spawn_child("lookup", &helper, "What will the weather be?").await?;
    /// let turn = child.drive().await;
    /// run.join_child(&child, &turn).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::Depth`] if the child would have more than 64 ancestors; [`RunError::Engine`].
    pub async fn spawn_child(
        &mut self,
        name: &str,
        agent: &SubAgent,
        task: &str,
    ) -> Result<Run, RunError> {
        let live = spawn_child(&mut self.live, name, agent, task).await?;
        Ok(Self { live })
    }

    /// Passes this run's layer states to the layers of a running child.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let helper = SubAgent::new(agent.clone(), "Looks up the weather.");
    /// let mut child = run.spawn_child("lookup", &helper, "What will the weather be?").await?;
    /// run.update_child(&mut child).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::Engine`] for a layer that must not fail.
    pub async fn update_child(&self, child: &mut Run) -> Result<(), RunError> {
        let parent = &self.live.session;
        parent.update_child(&mut child.live.session).await?;
        Ok(())
    }

    /// Records the end of a child: this run's layers are notified, and the child's usage counts here.
    ///
    /// Returns what this run's layers make of the child's result ([`Layer::on_return`]). Repeating it has no effect, not even after
    /// this run was resumed, and then returns [`ChildResult::Keep`]. A child that waits has not ended, so nothing happens.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # use contexture_runs::{Agent, Run, SubAgent};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny.", "Warm."]));
    /// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
    /// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
    /// # let mut run = Run::begin(&chat, &agent, [question]).await?;
    /// let helper = SubAgent::new(agent.clone(), "Looks up the weather.");
    /// let mut child = run.spawn_child("lookup", &helper, "What will the weather be?").await?;
    /// let turn = child.drive().await;
    /// run.join_child(&child, &turn).await?;
    /// assert_eq!(run.usage().responses, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::Engine`].
    pub async fn join_child(
        &mut self,
        child: &Run,
        turn: &Result<Turn, RunError>,
    ) -> Result<ChildResult, RunError> {
        join_child(&mut self.live, &child.live, turn).await
    }
}

/// Converts a program's value to JSON.
fn to_json(what: &str, value: &impl Serialize) -> Result<Raw, RunError> {
    Raw::from_value(value).map_err(|error| RunError::ItemMismatch {
        subject: what.to_owned(),
        expected: "what can be written as JSON".to_owned(),
        found: error.to_string(),
    })
}

/// Parses a program's value from its JSON.
fn from_json<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(bytes).map_err(|error| RunError::ItemMismatch {
        subject: what.to_owned(),
        expected: std::any::type_name::<T>().to_owned(),
        found: error.to_string(),
    })
}

/// Runs one turn of an agent: begins a run with this input and drives it.
///
/// # Errors
/// As [`Run::drive`].
pub async fn run_turn(
    chat: &Conversation,
    agent: &Agent,
    input: impl IntoIterator<Item = Item>,
) -> Result<Turn, RunError> {
    let mut run = Run::begin(chat, agent, input).await?;
    run.drive().await
}

/// Like [`run_turn`], with a text as the user's message.
///
/// # Errors
/// As [`Run::drive`].
pub async fn run_turn_with_text(
    chat: &Conversation,
    agent: &Agent,
    text: &str,
) -> Result<Turn, RunError> {
    run_turn(chat, agent, [user_message(text)]).await
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.live.id)
            .field("chat", &self.live.chat)
            .field("step", &self.live.step)
            .field("next", &self.live.next_step)
            .field("spent", &self.live.usage)
            .finish_non_exhaustive()
    }
}
