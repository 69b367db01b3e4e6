//! Guardrails: checks of answers before they are accepted, and of tool calls before they run.
//!
//! A [`Guard`] checks an answer and accepts it, corrects it, rejects it with feedback, or ends the run. A [`ToolRule`]
//! decides for tools by pattern whether they run, need approval, or get guidance. They keep no state, and they do not
//! fail open: if one fails, the operation fails and the tool does not run.
//!
//! Not here: asking the model again (the caller applies [`Guardrails::max_retries`]), and limits on payloads
//! (`contexture-compile`).

mod calls;
mod guard;
mod json;
mod text_guards;
mod tool_guards;

pub use calls::ToolCalls;
pub use guard::{Guard, ModelAnswer};
pub use json::JsonOutput;
pub use text_guards::{ForbiddenText, MatchAction, MaxLength};
pub use tool_guards::OutputVerdict;

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_ir::{FunctionCallOutput, Item};
use contexture_tools::Pattern;

use self::tool_guards::ToolGuards;
use crate::contract::{
    AnswerVerdict, HookContext, Layer, LayerError, LayerId, LayerSpec, OnError, RecallInput,
    ToolGate, ToolRequest,
};

/// Guardrails as a layer, named `guardrails`.
///
/// ```
/// use contexture_ir::{BranchName, ConversationId, Item, Message, Owner, Role};
/// use contexture_layers::builtin::{Guardrails, MaxLength};
/// use contexture_layers::{ToolGate, HookContext, Layers, AnswerVerdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let guardrails = Guardrails::new()
///     .with_guard(MaxLength::new(10))
///     .with_rule("delete_*", ToolGate::Deny("nothing is deleted here".to_owned()));
/// let layers = Layers::new().with_layer(guardrails)?;
/// let context = HookContext::new(Owner::new("ada")?, ConversationId::new("c")?, BranchName::main());
/// let mut states = layers.restore_states([]);
/// layers.init_states(&mut states, &context).await?;
///
/// let long = [Item::from(Message::text(Role::Assistant, "a long answer"))];
/// let (verdict, _) = layers.after_model(&mut states, &long, &context).await?;
/// assert!(matches!(verdict, AnswerVerdict::Retry { .. }));
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Guardrails {
    id: LayerId,
    guards: Vec<Arc<dyn Guard>>,
    rules: Vec<ToolRule>,
    tool_guards: ToolGuards,
    max_retries: u32,
}

/// Decision on calls of certain tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// Pattern of tool names.
    pub tool: Pattern,
    /// Decision on their calls.
    pub gate: ToolGate,
}

impl Guardrails {
    /// Creates guardrails that check nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LayerId::built_in("guardrails"),
            guards: Vec::new(),
            rules: Vec::new(),
            tool_guards: ToolGuards::default(),
            max_retries: 3,
        }
    }

    /// Adds a guard. Each guard sees the answer as corrected by those before it; the first that rejects the answer, or
    /// ends the run, decides.
    #[must_use]
    pub fn with_guard(mut self, guard: impl Guard + 'static) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// Adds a rule for tools. The first rule whose pattern matches a tool applies; a tool without a rule may run.
    #[must_use]
    pub fn with_rule(mut self, tool: impl Into<Pattern>, gate: ToolGate) -> Self {
        let tool = tool.into();
        self.rules.push(ToolRule { tool, gate });
        self
    }

    /// Adds a check of tool calls by a rule of the program's own, such as on their arguments. It must be quick. All checks and the
    /// rule of the tool are asked; the strictest verdict applies. If one panics, the call is denied.
    ///
    /// ```
    /// use contexture_layers::ToolGate;
    /// use contexture_layers::builtin::Guardrails;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Refund { dollars: u32 }
    ///
    /// let guardrails = Guardrails::new().with_call_guard(|call| match call.arguments.parse_as::<Refund>() {
    ///     Ok(refund) if call.tool == "refund" && refund.dollars > 50 => {
    ///         ToolGate::Ask(format!("refund {} dollars?", refund.dollars))
    ///     }
    ///     _ => ToolGate::Allow,
    /// });
    /// ```
    #[must_use]
    pub fn with_call_guard(
        mut self,
        check: impl Fn(&ToolRequest) -> ToolGate + Send + Sync + 'static,
    ) -> Self {
        self.tool_guards.add_call_guard(check);
        self
    }

    /// Adds a check of tool outputs before they are stored, whichever tool they are of. It must be quick. If it panics, the output
    /// is not stored and the operation fails.
    ///
    /// ```
    /// use contexture_ir::Output;
    /// use contexture_layers::builtin::{Guardrails, OutputVerdict};
    ///
    /// let guardrails = Guardrails::new().with_output_guard(|output| match &output.output {
    ///     Output::Text(text) if text.contains("password=") => {
    ///         OutputVerdict::Replace("withheld: it held a password".to_owned())
    ///     }
    ///     _ => OutputVerdict::Pass,
    /// });
    /// ```
    #[must_use]
    pub fn with_output_guard(
        mut self,
        check: impl Fn(&FunctionCallOutput) -> OutputVerdict + Send + Sync + 'static,
    ) -> Self {
        self.tool_guards.add_output_guard(check);
        self
    }

    /// Sets how many times in a row the model may be asked again. Default 3. The agent's own limit applies too.
    #[must_use]
    pub const fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// Returns how many times in a row the model may be asked again.
    #[must_use]
    pub const fn max_retries(&self) -> u32 {
        self.max_retries
    }
}

impl Default for Guardrails {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Layer for Guardrails {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec {
            on_error: OnError::Fail,
            ..LayerSpec::new(self.id.clone())
        }
    }

    async fn recall(&self, (): &(), _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn after_model(
        &self,
        (): &mut (),
        answer: &[Item],
        _: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        let mut items = Cow::Borrowed(answer);
        for guard in &self.guards {
            match guard.check_answer(&ModelAnswer { items: &items }) {
                AnswerVerdict::Pass => {}
                AnswerVerdict::Fix(mended) => items = Cow::Owned(mended),
                last => return Ok(last),
            }
        }
        Ok(match items {
            Cow::Borrowed(_) => AnswerVerdict::Pass,
            Cow::Owned(mended) => AnswerVerdict::Fix(mended),
        })
    }

    async fn before_tool(
        &self,
        (): &mut (),
        call: &ToolRequest,
        _: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        let tool = call.tool_id();
        let rule = self.rules.iter().find(|rule| rule.tool.matches(&tool));
        let gate = rule.map_or(ToolGate::Allow, |rule| rule.gate.clone());
        Ok(self.tool_guards.check_call(call, gate))
    }

    async fn on_append(
        &self,
        (): &mut (),
        mut items: Vec<Item>,
        _: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        self.tool_guards.check_outputs(&mut items);
        Ok(items)
    }
}
