//! Tools with their handlers, under a policy.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use contexture_compile::compaction::{NEW_CONTEXT_REPLY, new_context_tool};
use contexture_layers::Rerun;
use contexture_telemetry::Operation;
use contexture_tools::{
    Call, LoadedToolkits, Policy, PolicyVerdict, Registry, Resolved, Route, Tool, ToolError,
    ToolGroup, ToolId,
};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::handler::{ToolCall, ToolFailure, ToolHandler, ToolOptions, ToolOutput};
use super::permit::{ApprovalState, Permit, Resolution};
use crate::context::RunContext;
use crate::tasks::{Abort, panic_message};

/// Tools, their handlers, and the policy that decides which calls run.
///
/// ```
/// use contexture_ir::{Output, Raw};
/// use contexture_runs::{Abort, Allowed, Resolution, ToolBox, ToolCall, ToolOutput};
/// use contexture_tools::{Call, LoadedToolkits, Policy, Tool};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let schema = Raw::parse(r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#)?;
/// let mut tools = ToolBox::new(Policy::deny_all().allow("greet"));
/// tools.add_tool(Tool::function("greet", "Greets", schema), |call: ToolCall| async move {
///     Ok(ToolOutput::from(format!("greeted with {}", call.arguments.get())))
/// })?;
///
/// let call = Call::new("greet", r#"{name: "Ada"}"#);
/// let Resolution::Allowed(Allowed::Run(permit)) = tools.resolve_call(&call, "call_1", &LoadedToolkits::default())? else {
///     unreachable!()
/// };
/// let output = tools.run_tool(permit, &Abort::new()).await?;
/// assert_eq!(output.output, Output::Text(r#"greeted with {"name":"Ada"}"#.to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolBox {
    registry: Registry,
    policy: Policy,
    handlers: BTreeMap<ToolId, RegisteredTool>,
}

#[derive(Clone)]
struct RegisteredTool {
    handler: Arc<dyn ToolHandler>,
    options: ToolOptions,
}

impl ToolBox {
    /// Creates a tool box without tools.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    /// Adds a group; tools of the group are added after it.
    ///
    /// # Errors
    /// [`ToolError`] for a name that is taken or invalid.
    pub fn add_group(&mut self, group: ToolGroup) -> Result<(), ToolError> {
        self.registry.register_group(group)
    }

    /// Adds a tool with [`ToolOptions::default`].
    ///
    /// # Errors
    /// [`ToolError`] for a name that is taken, or an invalid definition.
    pub fn add_tool(
        &mut self,
        tool: Tool,
        handler: impl ToolHandler + 'static,
    ) -> Result<ToolId, ToolError> {
        self.add_tool_with(tool, ToolOptions::default(), handler)
    }

    /// Adds a tool with options.
    ///
    /// # Errors
    /// As [`Self::add_tool`].
    pub fn add_tool_with(
        &mut self,
        tool: Tool,
        options: ToolOptions,
        handler: impl ToolHandler + 'static,
    ) -> Result<ToolId, ToolError> {
        let id = self.registry.register(tool)?;
        let handler = Arc::new(handler);
        self.handlers
            .insert(id.clone(), RegisteredTool { handler, options });
        Ok(id)
    }

    /// Adds `new_context`, by which the model asks for a compaction itself. It is made before the run's next step, and what the
    /// model gives as `summary` stands before the manifest. The policy has to allow the tool.
    ///
    /// ```
    /// use contexture_runs::ToolBox;
    /// use contexture_tools::Policy;
    ///
    /// let mut tools = ToolBox::new(Policy::deny_all().allow("new_context"));
    /// tools.add_new_context()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::add_tool`].
    pub fn add_new_context(&mut self) -> Result<ToolId, ToolError> {
        let options = ToolOptions {
            // It changes nothing by itself.
            rerun: Rerun::Repeat,
            ..ToolOptions::default()
        };
        let tool = Tool::new(new_context_tool());
        self.add_tool_with(tool, options, |_: ToolCall| async {
            Ok(ToolOutput::from(NEW_CONTEXT_REPLY.to_owned()))
        })
    }

    /// Adds a tool that the provider runs: it is offered to models, and a call that arrives here is refused.
    ///
    /// # Errors
    /// As [`Self::add_tool`].
    pub fn add_hosted_tool(&mut self, tool: Tool) -> Result<ToolId, ToolError> {
        self.registry.register(tool)
    }

    /// Removes a tool. Calls in progress continue.
    pub fn remove_tool(&mut self, tool: &ToolId) -> Option<Tool> {
        self.handlers.remove(tool);
        self.registry.unregister(tool)
    }

    /// Returns the registry of tools, from which they are offered.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Replaces the policy. Permits given before are checked against the new one when they are used.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Resolves a call. Its arguments are repaired where only one reading is possible, and checked against the tool's
    /// schema; arguments that seem to be cut off are refused. `loaded` are the toolkits loaded so far.
    ///
    /// # Errors
    /// [`ToolFailure::Unknown`], [`ToolFailure::Denied`], [`ToolFailure::BadArguments`].
    pub fn resolve_call(
        &self,
        call: &Call,
        call_id: &str,
        loaded: &LoadedToolkits,
    ) -> Result<Resolution, ToolFailure> {
        let resolved = self.registry.resolve(call, &self.policy, loaded)?;
        let verdict = resolved.verdict;
        let options = match resolved.route {
            // Loading a toolkit runs nothing, so it needs no handler.
            Route::Load(_) => ToolOptions::default(),
            _ => self.registered_tool(&resolved.tool)?.options,
        };
        // Before a person is asked: nobody should approve a call that cannot run.
        self.check_arguments(&resolved)?;
        let permit = Permit::new(resolved, &call.name, call_id, options);
        match verdict {
            PolicyVerdict::Allow => Ok(Resolution::Allowed(permit.into_allowed())),
            PolicyVerdict::Ask => Ok(Resolution::Ask(permit.into_pending())),
            PolicyVerdict::Deny => Err(denied_failure(permit.tool(), "")),
        }
    }

    /// Runs a call, within its tool's time limit and until it is aborted. A panic of the tool is a failure.
    ///
    /// # Errors
    /// [`ToolFailure`]; `Denied`, `Unknown` and `BadArguments` mean that it did not run, unless the handler returned
    /// them.
    pub async fn run_tool(&self, permit: Permit, abort: &Abort) -> Result<ToolOutput, ToolFailure> {
        self.run_traced(permit, abort, None).await
    }

    /// Runs a call of a run, which its tool is given.
    pub(crate) async fn run_tool_in(
        &self,
        permit: Permit,
        run: RunContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let abort = run.abort().clone();
        self.run_traced(permit, &abort, Some(run)).await
    }

    async fn run_traced(
        &self,
        permit: Permit,
        abort: &Abort,
        run: Option<RunContext>,
    ) -> Result<ToolOutput, ToolFailure> {
        let operation = Operation::for_tool(&permit.tool().to_string(), permit.call_id());
        let run = self.run_permitted(permit, abort, run);
        let ended = run.instrument(operation.span().clone()).await;
        operation.end(ended.as_ref().err().map(ToolFailure::kind));
        ended
    }

    async fn run_permitted(
        &self,
        permit: Permit,
        abort: &Abort,
        run: Option<RunContext>,
    ) -> Result<ToolOutput, ToolFailure> {
        abort.ensure_not_aborted()?;
        let held = self.registered_tool(permit.tool())?;
        // Checked again, because tools, policy and schema may have changed since the permit was given: an approval may
        // take a day.
        self.check_permit(&permit)?;
        self.check_arguments(&permit.resolved)?;
        let options = *permit.options();
        let call = ToolCall {
            tool: permit.tool().clone(),
            call_id: permit.call_id().to_owned(),
            arguments: permit.arguments().clone(),
            abort: abort.child(),
            run,
        };
        // The tool may have spawned tasks. However this call ends, by a timeout or a drop, they are aborted too.
        let over = AbortOnDrop(call.abort.clone());
        let tool = call.tool.clone();
        // In an async block, so that a panic while the future is built is caught as well.
        let run = AssertUnwindSafe(async { held.handler.run_call(call).await }).catch_unwind();
        let run = abort.run_until_aborted(run);
        let ended = match options.timeout {
            None => run.await,
            Some(limit) => match tokio::time::timeout(limit, run).await {
                Ok(ended) => ended,
                Err(_) => {
                    let failure = ToolFailure::TimedOut { tool, limit };
                    over.0.abort(failure.to_string());
                    return Err(failure);
                }
            },
        };
        let output =
            ended?.map_err(|panic| ToolFailure::from_message(panic_message(&*panic)))??;
        // After the run: the limit protects the history, not the tool.
        output.limit_bytes(options.max_bytes)
    }

    fn registered_tool(&self, tool: &ToolId) -> Result<&RegisteredTool, ToolFailure> {
        self.handlers.get(tool).ok_or_else(|| ToolFailure::Unknown {
            reason: format!("{tool} cannot be called here: nothing runs it"),
        })
    }

    /// Checks that the current policy lets the call run.
    fn check_permit(&self, permit: &Permit) -> Result<(), ToolFailure> {
        let tool = permit.tool();
        let verdict = self
            .registry
            .get(tool)
            .map(|tool| self.policy.decide_tool(tool).verdict);
        match (verdict, permit.approval) {
            // An approval satisfies `Ask` only: a policy that denies by now overrules it.
            (Some(PolicyVerdict::Allow), _)
            | (Some(PolicyVerdict::Ask), ApprovalState::Approved) => Ok(()),
            (Some(PolicyVerdict::Ask), ApprovalState::NotAsked) => {
                Err(denied_failure(tool, ", for nobody was asked about it"))
            }
            (Some(PolicyVerdict::Deny) | None, _) => Err(denied_failure(tool, "")),
        }
    }

    fn check_arguments(&self, resolved: &Resolved) -> Result<(), ToolFailure> {
        let bad = |reason: String| ToolFailure::BadArguments {
            reason: format!("{}: {reason}", resolved.tool),
        };
        if !resolved.arguments.is_complete() {
            let reason = "the arguments end too early; call again with all of them";
            return Err(bad(reason.to_owned()));
        }
        let findings = self.registry.check_arguments(resolved);
        let findings = findings.map_err(|error| bad(error.to_string()))?;
        if findings.is_empty() {
            return Ok(());
        }
        let violations: Vec<String> = findings.iter().map(ToString::to_string).collect();
        Err(bad(violations.join("; ")))
    }
}

/// Aborts work that a call started, as soon as the call ends or is dropped.
struct AbortOnDrop(Abort);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort("the call is over");
    }
}

fn denied_failure(tool: &ToolId, reason: &str) -> ToolFailure {
    ToolFailure::Denied {
        reason: format!("{tool} is denied{reason}"),
    }
}

impl fmt::Debug for ToolBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBox")
            .field("tools", &self.handlers.keys())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
