//! What runs inside a run is given of it: its place, its conversation, the program's own values, its channels and its abort.
//!
//! Cheap to clone. It shows the run as it was when the work began; usage and last step do not change under it.
//!
//! Not here: driving the run ([`crate::Run`]), and what layers are given (`HookContext`).

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use contexture_compile::Report;
use contexture_engine::{Conversation, EngineError, LayerHandle};
use contexture_ir::{FinishReason, FunctionCall, NodeId, Owner, ResponseId, RunId};
use contexture_layers::Layer;

use crate::channels::Channels;
use crate::limits::RunUsage;
use crate::tasks::Abort;

/// What a tool, an approver or a step of the program is given of the run that it works in.
///
/// ```
/// # use std::sync::Arc;
/// # use contexture_ir::Raw;
/// # use contexture_models::{ModelResponse, ScriptedModel};
/// use contexture_runs::{Agent, ToolBox, ToolCall, ToolFailure, ToolOutput};
/// use contexture_tools::{Policy, Tool};
///
/// /// What the program gives its tools.
/// struct Shop { name: String }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Arc::new(ScriptedModel::new([]));
/// let mut tools = ToolBox::new(Policy::default());
/// let schema = Raw::parse(r#"{"type":"object"}"#)?;
/// tools.add_tool(Tool::function("greet", "Greets.", schema), |call: ToolCall| async move {
///     let run = call.run.as_ref().ok_or_else(|| ToolFailure::from_message("it works in no run"))?;
///     let shop = run.value::<Shop>().ok_or_else(|| ToolFailure::from_message("there is no shop"))?;
///     run.report_progress("looking up the owner");
///     Ok(ToolOutput::from(format!("{} greets {}", shop.name, run.owner())))
/// })?;
/// let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"))
///     .with_tools(tools)?
///     .with_value(Shop { name: "Aurora".to_owned() });
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RunContext {
    parts: Arc<ContextParts>,
    /// The call that is worked on; `None` in a step of the program.
    call: Option<NodeId>,
}

/// What the contexts of one step share.
pub(crate) struct ContextParts {
    pub(crate) run: RunId,
    pub(crate) step: u32,
    pub(crate) depth: u32,
    pub(crate) parent: Option<RunId>,
    pub(crate) agent: String,
    pub(crate) chat: Conversation,
    pub(crate) values: Values,
    pub(crate) abort: Abort,
    pub(crate) channels: Channels,
    pub(crate) usage: RunUsage,
    pub(crate) last_step: Option<Arc<LastStep>>,
    pub(crate) progress: Progress,
}

/// Passes a report of progress to the run's observer.
pub(crate) type Progress = Arc<dyn Fn(Option<NodeId>, String) + Send + Sync>;

/// The last answer of a run, and the call that it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct LastStep {
    /// Id of the stored answer.
    pub response: ResponseId,
    /// Why the answer ended, if the provider said so.
    pub finish: Option<FinishReason>,
    /// The model's refusal, if it refused.
    pub refusal: Option<String>,
    /// The calls of the answer.
    pub calls: Vec<FunctionCall>,
    /// Usage of the call.
    pub usage: RunUsage,
    /// What the request contained and why: tokens by segment, with the layers that they are of.
    pub report: Report,
}

impl RunContext {
    pub(crate) fn new(parts: ContextParts) -> Self {
        Self {
            parts: Arc::new(parts),
            call: None,
        }
    }

    /// Returns the context of a call.
    pub(crate) fn for_call(&self, call: NodeId) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
            call: Some(call),
        }
    }

    /// Id of the run.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.parts.run
    }

    /// Number of the run's step.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.parts.step
    }

    /// Node of the call that is worked on; `None` in a step of the program.
    #[must_use]
    pub const fn call(&self) -> Option<NodeId> {
        self.call
    }

    /// Number of the run's ancestors.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.parts.depth
    }

    /// Id of the parent run, if there is one.
    #[must_use]
    pub fn parent(&self) -> Option<RunId> {
        self.parts.parent
    }

    /// Name of the agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.parts.agent
    }

    /// The conversation, on the run's branch. What is appended by it is refused once another process drives the run.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.parts.chat
    }

    /// Owner of the conversation.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        self.parts.chat.owner()
    }

    /// The program's value of this type, set with [`Agent::with_value`](crate::Agent::with_value).
    #[must_use]
    pub fn value<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.parts.values.get()
    }

    /// A handle on the layer of this type; it sees stored state.
    ///
    /// # Errors
    /// [`EngineError::Layers`] if there is no such layer.
    pub fn layer<L: Layer>(&self) -> Result<LayerHandle<L>, EngineError> {
        self.parts.chat.layer::<L>()
    }

    /// The run's abort: for work that is to end with the run.
    #[must_use]
    pub fn abort(&self) -> &Abort {
        &self.parts.abort
    }

    /// The channels of the run's tree. An abort of the run ends every wait on them.
    #[must_use]
    pub fn channels(&self) -> &Channels {
        &self.parts.channels
    }

    /// Usage of the run when the work began, children included.
    #[must_use]
    pub fn usage(&self) -> &RunUsage {
        &self.parts.usage
    }

    /// The last answer of the run; `None` before the first one of this process.
    #[must_use]
    pub fn last_step(&self) -> Option<&LastStep> {
        self.parts.last_step.as_deref()
    }

    /// Tells the run's observer how far the work is ([`RunEventKind::Progress`](crate::RunEventKind::Progress)). It is not stored.
    pub fn report_progress(&self, text: impl Into<String>) {
        (self.parts.progress)(self.call, text.into());
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("run", &self.parts.run)
            .field("step", &self.parts.step)
            .field("call", &self.call)
            .field("agent", &self.parts.agent)
            .finish_non_exhaustive()
    }
}

/// The program's own values, one of each type.
#[derive(Clone, Default)]
pub(crate) struct Values(Arc<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Values {
    /// Sets the value of its type.
    pub(crate) fn set<T: Any + Send + Sync>(&mut self, value: T) {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), Arc::new(value));
    }

    fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.0.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// These values, and those of `below` of types that are not among them.
    pub(crate) fn over(&self, below: &Self) -> Self {
        if self.0.is_empty() {
            return below.clone();
        }
        let mut all = BTreeMap::clone(&below.0);
        all.extend(
            self.0
                .iter()
                .map(|(kind, value)| (*kind, Arc::clone(value))),
        );
        Self(Arc::new(all))
    }
}
