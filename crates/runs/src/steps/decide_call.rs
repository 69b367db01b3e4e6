//! Decides what happens to a tool call: the policy first, then layers, then a person.
//!
//! A *plan* is a decision that was made but not carried out, so all calls of an answer are decided before the first of
//! them runs. For a tool that was started before a crash the tool's own [`Rerun`] policy is applied last. Not here:
//! carrying plans out (`tool_step`).

use contexture_ir::{NodeId, Raw};
use contexture_layers::{OfferedTo, Rerun, ToolGate, ToolRequest};
use contexture_tools::{Call as ToolsCall, Name, PolicyVerdict, ToolId, arguments};

use crate::agent::{ApprovalDecision, RunEventKind};
use crate::error::RunError;
use crate::execution::{LiveRun, UnansweredCall};
use crate::tools::{Allowed, PendingApproval, Permit, Resolution, ToolFailure, ToolOutput};

/// What happens to a call.
pub(crate) enum PlannedAction {
    /// This result is the output; nothing runs.
    Answer(Result<ToolOutput, ToolFailure>),
    /// A tool runs.
    Tool(Permit),
    /// A toolkit is loaded.
    Load(Name),
    /// A function of a layer is called with these arguments.
    Function(Raw),
    /// A sub-agent is given this task.
    Task(String),
    /// A person has to decide first.
    Wait,
}

impl PlannedAction {
    /// Denies a call, telling the model why.
    fn denied(reason: String) -> Self {
        Self::Answer(Err(ToolFailure::Denied { reason }))
    }
}

/// A call, its planned action, and the guidance of layers, which the model gets together with the output.
pub(crate) struct ToolPlan {
    pub(crate) call: UnansweredCall,
    pub(crate) planned: PlannedAction,
    pub(crate) guidance: String,
}

/// What a call's name resolves to.
enum CallTarget {
    /// Nothing that can run.
    Failed(ToolFailure),
    /// Something that can run. A person has to be asked if there is an `approval_reason`.
    Reached {
        planned: PlannedAction,
        request: ToolRequest,
        approval_reason: Option<String>,
        pending: Option<PendingApproval>,
    },
}

impl CallTarget {
    fn reached(planned: PlannedAction, request: ToolRequest) -> Self {
        Self::Reached {
            planned,
            request,
            approval_reason: None,
            pending: None,
        }
    }
}

/// The arguments of a call that gives another agent a task.
#[derive(serde::Deserialize)]
struct DelegatedTask {
    task: String,
}

/// Decides a call: first the policy, then layers, then a person.
pub(crate) async fn decide_call(
    run: &mut LiveRun,
    call: UnansweredCall,
) -> Result<ToolPlan, RunError> {
    let mut guidance = String::new();
    let planned = match resolve_call(run, &call) {
        // Layers are not asked about a call that cannot run.
        CallTarget::Failed(failure) => PlannedAction::Answer(Err(failure)),
        CallTarget::Reached {
            planned,
            request,
            approval_reason,
            pending,
        } => {
            // Layers are asked before a person, so nobody has to decide about a call that a layer denies.
            let gate = run.session.before_tool(&request).await;
            let denied_by_person = matches!(
                run.resume_state.decision(call.node),
                Some(ApprovalDecision::Deny { .. })
            );
            match apply_gate(gate, approval_reason, denied_by_person, &mut guidance) {
                GateOutcome::Denied(reason) => PlannedAction::denied(reason),
                GateOutcome::Approved => approved_action(planned, pending),
                GateOutcome::AskPerson(reason) => {
                    match request_approval(run, call.node, &request, &reason).await {
                        ApprovalDecision::Allow => approved_action(planned, pending),
                        ApprovalDecision::Later => PlannedAction::Wait,
                        ApprovalDecision::Deny { reason } => PlannedAction::denied(reason),
                    }
                }
            }
        }
    };
    Ok(ToolPlan {
        // Last, because only a call that may run now can run a second time.
        planned: recover_started_tool(run, &call, planned),
        call,
        guidance,
    })
}

/// Combined decision of policy and layers about a call.
enum GateOutcome {
    Denied(String),
    Approved,
    /// A person decides, given this reason; it is empty where only the policy asks.
    AskPerson(String),
}

/// Combines what the policy asks (`approval_reason`) with what layers decide.
fn apply_gate(
    gate: ToolGate,
    approval_reason: Option<String>,
    denied_by_person: bool,
    guidance: &mut String,
) -> GateOutcome {
    // A call that a person denied stays denied, whatever policy and layers decide now: `AskPerson` finds the stored
    // decision, so nobody is asked twice.
    let mut asks = denied_by_person || approval_reason.is_some();
    let mut reason = approval_reason;
    match gate {
        ToolGate::Deny(reason) => return GateOutcome::Denied(reason),
        ToolGate::Ask(layer_reason) => {
            asks = true;
            // A layer's reason replaces the policy's, which is always empty.
            reason = Some(layer_reason);
        }
        // Appended to the output for the model; the call itself runs normally.
        ToolGate::Guide(text) => *guidance = text,
        // A layer may waive the approval that the policy asks for, but it cannot overrule a person's denial.
        ToolGate::Approve => asks = denied_by_person,
        ToolGate::Allow => {}
    }
    match asks {
        true => GateOutcome::AskPerson(reason.unwrap_or_default()),
        false => GateOutcome::Approved,
    }
}

/// Returns the stored decision about a call, or asks the approver.
async fn request_approval(
    run: &LiveRun,
    node: NodeId,
    request: &ToolRequest,
    reason: &str,
) -> ApprovalDecision {
    match run.resume_state.decision(node) {
        // Decisions are nodes on the branch, so a resumed run finds earlier ones.
        Some(decision) => decision.clone(),
        None => {
            run.notify_observer(|| RunEventKind::ApprovalAsked {
                node,
                tool: request.tool.clone(),
                reason: reason.to_owned(),
            });
            let context = run.context().for_call(node);
            let decision = run.agent.approver.decide(request, reason, &context);
            // An abort while a person decides is no decision: the call stays open, and the run ends as aborted.
            let decision = run.abort.run_until_aborted(decision).await;
            let decision = decision.unwrap_or(ApprovalDecision::Later);
            if decision != ApprovalDecision::Later {
                let decision = decision.clone();
                run.notify_observer(|| RunEventKind::ApprovalDecided { node, decision });
            }
            decision
        }
    }
}

/// Applies the rerun policy of a tool that an earlier process started and did not finish.
fn recover_started_tool(
    run: &LiveRun,
    call: &UnansweredCall,
    planned: PlannedAction,
) -> PlannedAction {
    let PlannedAction::Tool(permit) = &planned else {
        return planned;
    };
    // Tools that need a marker store it before they start, so without one the tool runs normally.
    if !run.resume_state.has_started_tool(call.node) {
        return planned;
    }
    match permit.rerun_policy() {
        Rerun::Repeat => planned,
        // Only a decision made after the interruption counts: an earlier approval was for the first attempt.
        Rerun::Ask => match run.resume_state.decision_since_start(call.node) {
            Some(ApprovalDecision::Allow) => planned,
            Some(ApprovalDecision::Deny { reason }) => PlannedAction::denied(reason.clone()),
            // Postponed, or not decided yet: a person still has to decide.
            _ => PlannedAction::Wait,
        },
        Rerun::Unknown => PlannedAction::Answer(Err(ToolFailure::from_message(format_args!(
            "{} was begun and cut off: nobody knows whether it did its work; look before calling it again",
            permit.tool()
        )))),
    }
}

/// Resolves a call's name, and asks the policy about it.
fn resolve_call(run: &LiveRun, call: &UnansweredCall) -> CallTarget {
    let name = &call.call.name;
    let function = run.session.layers().find_function(name);
    // A function that only programs may call is not a tool: a model that guesses its name gets the same answer as for
    // any unknown tool.
    let is_function = function.is_some_and(|(_, function)| function.offered_to == OfferedTo::Model);
    let is_sub_agent = run.agent.agents.contains_key(name);
    match is_function || is_sub_agent {
        false => resolve_tool(run, call),
        true => resolve_own_call(run, call, is_sub_agent),
    }
}

/// Resolves the call of a tool of the tool box.
fn resolve_tool(run: &LiveRun, call: &UnansweredCall) -> CallTarget {
    let resolved = run.agent.tools.resolve_call(
        &ToolsCall::from(&call.call),
        &call.call.call_id,
        &run.loaded,
    );
    match resolved {
        Err(failure) => CallTarget::Failed(failure),
        Ok(Resolution::Ask(pending)) => CallTarget::Reached {
            // A placeholder: `approved_action` replaces it with the permit once the call is approved.
            planned: PlannedAction::Wait,
            request: pending.tool_request(),
            approval_reason: Some(String::new()),
            pending: Some(pending),
        },
        Ok(Resolution::Allowed(Allowed::Run(permit))) => {
            let request = permit.tool_request();
            CallTarget::reached(PlannedAction::Tool(permit), request)
        }
        Ok(Resolution::Allowed(Allowed::Load(kit))) => {
            let request = layer_tool_request(call, &Raw::null());
            CallTarget::reached(PlannedAction::Load(kit), request)
        }
    }
}

/// Resolves the call of a layer's function or of a sub-agent: neither is in the tool box, so the policy is asked here.
fn resolve_own_call(run: &LiveRun, call: &UnansweredCall, is_sub_agent: bool) -> CallTarget {
    let name = &call.call.name;
    let policy = run.agent.tools.policy();
    let verdict = policy.decide_name(&ToolId::flat(name)).verdict;
    // Before the arguments are parsed: a denied call gets the same answer however it was written.
    if verdict == PolicyVerdict::Deny {
        let reason = format!("{name} is denied");
        return CallTarget::Failed(ToolFailure::Denied { reason });
    }
    let bad_arguments = |reason| CallTarget::Failed(ToolFailure::BadArguments { reason });
    let arguments = match arguments::parse_arguments(&call.call.arguments) {
        Ok(parsed) => parsed.raw,
        Err(error) => return bad_arguments(format!("{name}: {error}")),
    };
    let planned = match is_sub_agent {
        // The function's input schema is checked when the layer is called.
        false => PlannedAction::Function(arguments.clone()),
        true => match arguments.parse_as::<DelegatedTask>() {
            Ok(task) => PlannedAction::Task(task.task),
            Err(_) => {
                let reason = format!("{name}: expected an object with the text \"task\"");
                return bad_arguments(reason);
            }
        },
    };
    CallTarget::Reached {
        request: layer_tool_request(call, &arguments),
        planned,
        approval_reason: (verdict == PolicyVerdict::Ask).then(String::new),
        pending: None,
    }
}

/// Describes a call to layers under the name it was made by: functions and sub-agents have no other name.
fn layer_tool_request(call: &UnansweredCall, arguments: &Raw) -> ToolRequest {
    ToolRequest {
        tool: call.call.name.clone(),
        called_name: call.call.name.clone(),
        call_id: call.call.call_id.clone(),
        arguments: arguments.clone(),
    }
}

/// Returns the action of an allowed call: one that waited for approval gets its permit only now.
fn approved_action(planned: PlannedAction, pending: Option<PendingApproval>) -> PlannedAction {
    match pending.map(PendingApproval::approve) {
        None => planned,
        Some(Allowed::Run(permit)) => PlannedAction::Tool(permit),
        Some(Allowed::Load(kit)) => PlannedAction::Load(kit),
    }
}
