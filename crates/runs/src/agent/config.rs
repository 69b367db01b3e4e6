//! Configuration of an agent: a model, its target, its tools and its limits.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use contexture_compile::Target;
use contexture_engine::{Conversation, PrepareOptions};
use contexture_ir::{Body, Fragment};
use contexture_layers::Layers;
use contexture_models::{Model, Retry};
use contexture_render::Renderer;
use contexture_tools::Choice;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::agent::approval::{Approver, NoApprover};
use crate::agent::event::Observer;
use crate::agent::final_answer::{OutputType, Verifier};
use crate::agent::sub_agent::SubAgent;
use crate::agent::tool_names::AgentError;
use crate::context::Values;
use crate::limits::{RunBudget, StopCondition};
use crate::tools::ToolBox;

/// Default number of times the model is asked again after layers refused its answer.
const DEFAULT_MAX_REFUSALS: u32 = 3;

/// Default number of answers of one run: enough for most tasks, and a model that calls tools for ever is soon found out.
const DEFAULT_MAX_ANSWERS: u32 = 32;

/// A model, its target, its tools and its limits. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) target: Target,
    pub(crate) tools: Arc<ToolBox>,
    pub(crate) tool_choice: Choice,
    pub(crate) agents: BTreeMap<String, SubAgent>,
    pub(crate) stop_condition: Option<StopCondition>,
    pub(crate) budget: RunBudget,
    pub(crate) retry: Retry,
    pub(crate) max_refusals: u32,
    pub(crate) prepare_options: PrepareOptions,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) former_names: Vec<String>,
    pub(crate) instructions: Vec<Fragment>,
    pub(crate) layers: Option<Layers>,
    pub(crate) renderer: Option<Arc<dyn Renderer>>,
    pub(crate) output: Option<OutputType>,
    pub(crate) verifier: Option<Arc<dyn Verifier>>,
    pub(crate) max_answers: Option<u32>,
    pub(crate) values: Values,
    pub(crate) unfinished_run: UnfinishedRun,
}

impl Agent {
    /// Creates an agent without tools, whose runs may have 32 answers each.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// use contexture_runs::Agent;
    ///
    /// let model = Arc::new(ScriptedModel::new([]));
    /// let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// assert_eq!(agent.name(), "guide");
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>, target: Target) -> Self {
        Self {
            name: name.into(),
            model,
            target,
            tools: Arc::default(),
            tool_choice: Choice::all_tools(),
            agents: BTreeMap::new(),
            stop_condition: None,
            budget: RunBudget::default(),
            retry: Retry::default(),
            max_refusals: DEFAULT_MAX_REFUSALS,
            prepare_options: PrepareOptions::default(),
            approver: Arc::new(NoApprover),
            observer: None,
            former_names: Vec::new(),
            instructions: Vec::new(),
            layers: None,
            renderer: None,
            output: None,
            verifier: None,
            max_answers: Some(DEFAULT_MAX_ANSWERS),
            values: Values::default(),
            unfinished_run: UnfinishedRun::default(),
        }
    }

    /// Name of the agent, as lists of runs show it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// assert_eq!(agent.name(), "guide");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the agent's own instructions: what its model reads first, before what the conversation says. They are not stored with
    /// the conversation, so each agent that works on it has its own, from the first turn on.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_ir::{hint, role};
    ///
    /// let agent = agent.with_instructions([role("You guide travellers."), hint("Be brief.")])?;
    /// # Ok::<(), contexture_runs::AgentError>(())
    /// ```
    ///
    /// # Errors
    /// [`AgentError::NotInstructions`] for a fragment that carries a message: those belong to the conversation.
    pub fn with_instructions(
        mut self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<Self, AgentError> {
        let fragments: Vec<Fragment> = fragments.into_iter().collect();
        let message = fragments
            .iter()
            .find(|fragment| !matches!(fragment.body, Body::Data(_)));
        if let Some(fragment) = message {
            let name = fragment.name.clone();
            return Err(AgentError::NotInstructions { name });
        }
        self.instructions = fragments;
        Ok(self)
    }

    /// Sets the agent's own layers, in the place of those of the conversation. A sub-agent without layers of its own has its
    /// parent's. The states are found by the layers' ids, so two agents that share a layer share its state.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_layers::Layers;
    /// use contexture_layers::builtin::memory::Memory;
    ///
    /// let agent = agent.with_layers(Layers::new().with_layer(Memory::new())?);
    /// # Ok::<(), contexture_layers::LayersError>(())
    /// ```
    ///
    /// Names of their functions are checked against the agent's tools when a run begins ([`AgentError::DuplicateTool`]).
    #[must_use]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = Some(layers);
        self
    }

    /// Sets what writes the fragments of the agent, of its layers and of the conversation as text. Default: what the
    /// conversation's handle has, or the agent's parent.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_render::MarkdownRenderer;
    ///
    /// let agent = agent.with_renderer(Arc::new(MarkdownRenderer::default()));
    /// ```
    #[must_use]
    pub fn with_renderer(mut self, renderer: Arc<dyn Renderer>) -> Self {
        self.renderer = Some(renderer);
        self
    }

    /// Sets the type of the answer that ends a run: the model is given its schema, an answer that is not of it is followed by what
    /// is wrong, and the model is asked again, as often as [`with_max_refusals`](Self::with_max_refusals) says; then the run
    /// fails with [`RunError::ModelParse`](crate::RunError::ModelParse). [`Turn::output`](crate::Turn::output) reads the answer.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Weather {
    ///     /// In degrees Celsius.
    ///     temperature: f64,
    /// }
    ///
    /// let agent = agent.with_output::<Weather>();
    /// ```
    #[must_use]
    pub fn with_output<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.output = OutputType::of::<T>();
        self
    }

    /// Sets who judges the answer that would end a run: with feedback the model is asked again, as often as
    /// [`with_max_refusals`](Self::with_max_refusals) says; then the run fails with
    /// [`RunError::Denied`](crate::RunError::Denied).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use async_trait::async_trait;
    /// use contexture_runs::{RunContext, Verdict, Verifier};
    ///
    /// /// Asks for sources. Another one may ask a model, or run tests.
    /// struct NamesSources;
    ///
    /// #[async_trait]
    /// impl Verifier for NamesSources {
    ///     async fn verify(
    ///         &self,
    ///         answer: &str,
    ///         _: &RunContext,
    ///     ) -> Result<Verdict, Box<dyn std::error::Error + Send + Sync>> {
    ///         Ok(match answer.contains("https://") {
    ///             true => Verdict::Accepted,
    ///             false => Verdict::Rejected { feedback: "Name a source for each claim.".to_owned() },
    ///         })
    ///     }
    /// }
    ///
    /// let agent = agent.with_verifier(NamesSources);
    /// ```
    #[must_use]
    pub fn with_verifier(mut self, verifier: impl Verifier + 'static) -> Self {
        self.verifier = Some(Arc::new(verifier));
        self
    }

    /// Limits the answers that one run of the agent may have of its model, those that were refused included and those of
    /// sub-agents not: one more fails with [`RunError::TooManyAnswers`](crate::RunError::TooManyAnswers). Default 32; `None` for
    /// no limit.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// let agent = agent.with_max_answers(200);
    /// ```
    #[must_use]
    pub fn with_max_answers(mut self, answers: impl Into<Option<u32>>) -> Self {
        self.max_answers = answers.into();
        self
    }

    /// Returns the conversation as the agent sees it: with its own layers and its own renderer, where it has them.
    pub(crate) fn view_of(&self, chat: &Conversation) -> Conversation {
        chat.with_own_settings(self.layers.clone(), self.renderer.clone())
    }

    /// Gives the agent's tools a value of the program, such as a connection or who is signed in: they find it by its type
    /// ([`RunContext::value`](crate::RunContext::value)). Another one of the same type replaces it. Sub-agents have their parent's values, unless
    /// they have their own. An agent is cheap to clone, so one with the values of a request can be made for each.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// struct SignedIn(String);
    ///
    /// let for_ada = agent.clone().with_value(SignedIn("ada".to_owned()));
    /// ```
    #[must_use]
    pub fn with_value<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.values.set(value);
        self
    }

    /// Names the agent had before: it may resume the runs that began under them.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// let agent = agent.with_former_names(["tour-guide"]);
    /// ```
    #[must_use]
    pub fn with_former_names<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.former_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what becomes of a run of the branch that waits for a decision when a new one begins. Default: the new one is
    /// refused.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::UnfinishedRun;
    ///
    /// let agent = agent.with_unfinished_run(UnfinishedRun::Abandon);
    /// ```
    #[must_use]
    pub const fn with_unfinished_run(mut self, unfinished: UnfinishedRun) -> Self {
        self.unfinished_run = unfinished;
        self
    }

    /// Checks that a run of the agent of this name may be resumed.
    pub(crate) fn check_name(&self, began_as: &str) -> Result<(), AgentError> {
        if self.name == began_as || self.former_names.iter().any(|name| name == began_as) {
            return Ok(());
        }
        Err(AgentError::OtherAgent {
            expected: began_as.to_owned(),
            found: self.name.clone(),
        })
    }

    /// Sets the tools.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::ToolBox;
    /// use contexture_tools::Policy;
    ///
    /// let agent = agent.with_tools(ToolBox::new(Policy::deny_all()))?;
    /// # Ok::<(), contexture_runs::AgentError>(())
    /// ```
    ///
    /// # Errors
    /// [`AgentError::DuplicateTool`] for a tool whose name the target or a sub-agent has already.
    pub fn with_tools(mut self, tools: ToolBox) -> Result<Self, AgentError> {
        self.tools = Arc::new(tools);
        self.check_toolbox_names()?;
        Ok(self)
    }

    /// Restricts which of its tools the model is offered.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_tools::Choice;
    ///
    /// let agent = agent.with_tool_choice(Choice::by_names(["weather", "calendar/*"]));
    /// ```
    #[must_use]
    pub fn with_tool_choice(mut self, choice: Choice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Adds another agent, which the model calls as a tool of this name.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::SubAgent;
    ///
    /// let helper = SubAgent::new(agent.clone(), "Looks up the weather.");
    /// let agent = agent.with_sub_agent("ask_helper", helper)?;
    /// # Ok::<(), contexture_runs::AgentError>(())
    /// ```
    ///
    /// # Errors
    /// [`AgentError::DuplicateTool`] for a name that a tool or another sub-agent has already; [`AgentError::BadName`] for one
    /// that the target does not take.
    pub fn with_sub_agent(
        mut self,
        tool: impl Into<String>,
        agent: SubAgent,
    ) -> Result<Self, AgentError> {
        let tool = tool.into();
        self.check_sub_agent_name(&tool)?;
        self.agents.insert(tool, agent);
        Ok(self)
    }

    /// Stops the run when this condition holds. Without one, a run ends when an answer calls no tool.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::StopCondition;
    ///
    /// // Two and a half dollars.
    /// let cost = StopCondition::max_cost("2.50".parse()?);
    /// let agent = agent.with_stop_condition(StopCondition::max_steps(20).or(cost));
    /// # Ok::<(), contexture_runs::MoneyError>(())
    /// ```
    #[must_use]
    pub fn with_stop_condition(mut self, until: StopCondition) -> Self {
        self.stop_condition = Some(until);
        self
    }

    /// Limits what one run may use.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::RunBudget;
    ///
    /// let agent = agent.with_budget(RunBudget { tokens: Some(100_000), ..RunBudget::default() });
    /// ```
    #[must_use]
    pub const fn with_budget(mut self, budget: RunBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets how transient failures of the model are retried. Default: three attempts in all.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::Retry;
    ///
    /// let agent = agent.with_retry(Retry::never());
    /// ```
    #[must_use]
    pub const fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Sets how often in a row the model is asked again after layers refused its answer, and how often in a run after its final
    /// answer was not of the output type or the verifier rejected it. Default: 3. For layers the lower of this and the
    /// guardrails' limit applies.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// let agent = agent.with_max_refusals(1);
    /// ```
    #[must_use]
    pub const fn with_max_refusals(mut self, refusals: u32) -> Self {
        self.max_refusals = refusals;
        self
    }

    /// Sets how history is compacted when a call grows too large.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_engine::PrepareOptions;
    ///
    /// let agent = agent.with_prepare_options(PrepareOptions::default());
    /// ```
    #[must_use]
    pub fn with_prepare_options(mut self, prepare: PrepareOptions) -> Self {
        self.prepare_options = prepare;
        self
    }

    /// Sets who is asked about calls that are left to a person. Default: nobody, so the run waits.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::NoApprover;
    ///
    /// // Calls that need a decision make the run wait.
    /// let agent = agent.with_approver(NoApprover);
    /// ```
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Sets the observer of the run.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::RunEvent;
    ///
    /// let agent = agent.with_observer(|event: &RunEvent| println!("{}: {:?}", event.step, event.kind));
    /// ```
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("tools", &self.tools)
            .field("agents", &self.agents)
            .finish_non_exhaustive()
    }
}

/// What becomes of a run of the branch that waits for a decision when a new one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedRun {
    /// The new run is refused with [`RunError::Unfinished`](crate::RunError::Unfinished), which names the calls.
    #[default]
    Refuse,
    /// The one that waits is ended as aborted; its calls never run.
    Abandon,
}
