//! Running the calls of an answer: policy, layers, people; then tools, functions of layers, other agents.
//!
//! Not here: what a tool is ([`crate::ToolBox`]), child runs ([`super::children`]), how outputs are stored
//! (`outputs`).

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use contexture_ir::{NodeId, Raw};
use contexture_layers::{OfferedTo, Rerun, ToolGate, ToolRequest};
use contexture_store::StateChange;
use contexture_telemetry::Operation;
use contexture_tools::{Call as ToolsCall, Name, PolicyVerdict, ToolId, arguments};
use futures_util::future::{join, join_all};
use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::agent::{ApprovalDecision, RunEventKind};
use crate::error::RunError;
use crate::execution::{LiveRun, NextStep, UnansweredCall, UnansweredCalls, json_bytes};
use crate::record::{RUN_STATE_VERSION, started_key};
use crate::steps::resume::loaded_toolkits_change;
use crate::steps::store_output::append_guidance;
use crate::steps::store_output::{call_layer_function, store_output};
use crate::steps::sub_agent::SubAgentOutcome;
use crate::steps::sub_agent::run_sub_agent;
use crate::tools::{
    Allowed, PendingApproval, Permit, Resolution, ToolConcurrency, ToolFailure, ToolOutput,
    function_call_output,
};

/// What a call comes to.
enum PlannedAction {
    /// This, without anything being run.
    Answer(Result<ToolOutput, ToolFailure>),
    /// A tool.
    Tool(Permit),
    /// A toolkit is loaded.
    Load(Name),
    /// A function of a layer.
    Function(Raw),
    /// Another agent's task.
    Task(String),
    /// Somebody has to decide first.
    Wait,
}

/// A call, what it comes to, and what the model is told with its output.
struct ToolPlan {
    call: UnansweredCall,
    planned: PlannedAction,
    guidance: String,
}

/// A tool's call that was run.
struct ToolRun {
    call: UnansweredCall,
    /// Whether its beginning was noted.
    has_start_marker: bool,
    guidance: String,
    result: Result<ToolOutput, ToolFailure>,
}

type ToolPlans = Peekable<IntoIter<ToolPlan>>;

/// Runs calls. Those that wait for a person are left; gives those to decide about, of this run and of runs below it.
pub(crate) async fn run_calls(
    run: &mut LiveRun,
    calls: UnansweredCalls,
) -> Result<Vec<NodeId>, RunError> {
    let mut plans = Vec::new();
    for call in calls.calls.clone() {
        plans.push(decide_call(run, call).await?);
    }
    let (waiting, plans): (Vec<ToolPlan>, Vec<ToolPlan>) = plans
        .into_iter()
        .partition(|plan| matches!(plan.planned, PlannedAction::Wait));
    if !plans.is_empty() {
        run.advance_to_step(calls.step);
    }
    store_start_markers(run, &plans).await?;
    let mut waits: Vec<NodeId> = waiting.iter().map(|plan| plan.call.node).collect();
    let mut left: BTreeSet<NodeId> = waits.iter().copied().collect();
    let mut plans = plans.into_iter().peekable();
    while let Some(plan) = plans.next() {
        let node = plan.call.node;
        let below = execute_planned(run, &calls, plan, &mut plans).await?;
        if !below.is_empty() {
            left.insert(node);
            waits.extend(below);
        }
    }
    run.next_step = match waits.is_empty() {
        true => NextStep::Ask { refused: 0 },
        false => {
            let each = calls.calls.into_iter();
            NextStep::Run(UnansweredCalls {
                calls: each.filter(|call| left.contains(&call.node)).collect(),
                ..calls
            })
        }
    };
    Ok(waits)
}

/// Carries out one call, or those that run beside each other. Gives the calls below that wait, and with them this
/// one.
async fn execute_planned(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    plan: ToolPlan,
    rest: &mut ToolPlans,
) -> Result<Vec<NodeId>, RunError> {
    let ToolPlan {
        call,
        planned,
        guidance,
    } = plan;
    let node = call.node;
    if !matches!(planned, PlannedAction::Answer(_) | PlannedAction::Wait) {
        let call = call.call.clone();
        run.notify_observer(|| RunEventKind::ToolStarted { node, call });
    }
    match planned {
        PlannedAction::Tool(permit) => {
            run_tool_batch(run, of, call, permit, guidance, rest).await?
        }
        PlannedAction::Function(arguments) => {
            call_layer_function(run, of, &call, &arguments, &guidance).await?
        }
        PlannedAction::Task(task) => {
            let operation = Operation::for_tool(&call.call.name, &call.call.call_id);
            let delegated = Box::pin(run_sub_agent(run, of, &call, &task));
            let delegated = delegated.instrument(operation.span().clone()).await?;
            let (result, changes) = match delegated {
                SubAgentOutcome::Done { result, changes } => (result, changes),
                SubAgentOutcome::Waits(calls) => {
                    operation.end(None);
                    return Ok(calls);
                }
            };
            operation.end(result.as_ref().err().map(ToolFailure::kind));
            let output =
                append_guidance(function_call_output(&call.call.call_id, result), &guidance);
            store_output(run, of, &call, output, changes).await?;
        }
        PlannedAction::Load(kit) => {
            run.loaded.mark_loaded(kit.clone());
            let change = loaded_toolkits_change(run)?;
            let text = format!("{kit} is loaded: its tools can be called now");
            let output = function_call_output(&call.call.call_id, Ok(text.into()));
            let output = append_guidance(output, &guidance);
            store_output(run, of, &call, output, vec![change]).await?;
        }
        PlannedAction::Answer(result) => {
            let output =
                append_guidance(function_call_output(&call.call.call_id, result), &guidance);
            store_output(run, of, &call, output, Vec::new()).await?;
        }
        PlannedAction::Wait => {}
    }
    Ok(Vec::new())
}

/// Runs a tool, and those behind it that may run beside it. What one gives is stored while the others go on.
async fn run_tool_batch(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: UnansweredCall,
    permit: Permit,
    guidance: String,
    rest: &mut ToolPlans,
) -> Result<(), RunError> {
    let together = permit.tool_concurrency() == ToolConcurrency::Together;
    let mut batch = vec![(call, permit, guidance)];
    let beside = |plan: &ToolPlan| matches!(&plan.planned, PlannedAction::Tool(permit) if permit.tool_concurrency() == ToolConcurrency::Together);
    while together && let Some(plan) = rest.next_if(beside) {
        if let PlannedAction::Tool(permit) = plan.planned {
            let (node, call) = (plan.call.node, plan.call.call.clone());
            run.notify_observer(|| RunEventKind::ToolStarted { node, call });
            batch.push((plan.call, permit, plan.guidance));
        }
    }
    let (done, mut results) = mpsc::channel(batch.len());
    let (tools, abort) = (Arc::clone(&run.agent.tools), run.abort.clone());
    let work = async move {
        let each = batch.into_iter().map(async |(call, permit, guidance)| {
            let marked = permit.rerun_policy() != Rerun::Again;
            let result = tools.run_tool(permit, &abort).await;
            let ran = ToolRun {
                call,
                has_start_marker: marked,
                guidance,
                result,
            };
            // Where nobody stores it any more, the store has failed.
            drop(done.send(ran).await);
        });
        join_all(each).await;
    };
    let store = async {
        while let Some(ran) = results.recv().await {
            store_result(run, of, ran).await?;
        }
        Ok(())
    };
    join(work, store).await.1
}

/// Stores what a tool gave.
async fn store_result(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    ran: ToolRun,
) -> Result<(), RunError> {
    let mut changes = Vec::new();
    if ran.has_start_marker {
        changes.push(StateChange::remove_entry(started_key(
            run.id,
            ran.call.node,
        )?));
    }
    if let Ok(ToolOutput {
        completes: Some(value),
        ..
    }) = &ran.result
    {
        changes.extend(run.set_end_value(value.clone())?);
    }
    let output = function_call_output(&ran.call.call.call_id, ran.result);
    let output = append_guidance(output, &ran.guidance);
    store_output(run, of, &ran.call, output, changes).await
}

/// Notes that these tools begin, before they do, where a second time would not be the same.
async fn store_start_markers(run: &mut LiveRun, plans: &[ToolPlan]) -> Result<(), RunError> {
    let mut changes = Vec::new();
    for plan in plans {
        if let PlannedAction::Tool(permit) = &plan.planned
            && permit.rerun_policy() != Rerun::Again
        {
            let key = started_key(run.id, plan.call.node)?;
            let started = run.resume_state.start_marker(plan.call.node, permit.tool());
            changes.push(StateChange::put_entry(
                key,
                RUN_STATE_VERSION,
                json_bytes(&started),
            ));
        }
    }
    match changes.is_empty() {
        true => Ok(()),
        false => run.append_state("started", changes).await,
    }
}

/// What a call comes to: first what the policy says, then what layers say, then what a person says.
async fn decide_call(run: &mut LiveRun, call: UnansweredCall) -> Result<ToolPlan, RunError> {
    let mut guidance = String::new();
    let planned = match resolve_call(run, &call) {
        CallTarget::Failed(failure) => PlannedAction::Answer(Err(failure)),
        CallTarget::Reached {
            planned,
            request,
            mut why,
            pending,
        } => match run.session.before_tool(&request).await {
            ToolGate::Deny(reason) => {
                PlannedAction::Answer(Err(ToolFailure::Denied { why: reason }))
            }
            gate => {
                // What a person denied stays denied, whatever the policy says by now.
                let denied = matches!(
                    run.resume_state.decision(call.node),
                    Some(ApprovalDecision::Deny { .. })
                );
                let mut asks = denied || why.is_some();
                match gate {
                    ToolGate::Ask(said) => {
                        asks = true;
                        why = Some(said);
                    }
                    ToolGate::Guide(said) => guidance = said,
                    ToolGate::Approve => asks = denied,
                    ToolGate::Allow | ToolGate::Deny(_) => {}
                }
                let why = why.unwrap_or_default();
                match asks {
                    false => approved_action(planned, pending),
                    true => match request_approval(run, call.node, &request, &why).await {
                        ApprovalDecision::Allow => approved_action(planned, pending),
                        ApprovalDecision::Later => PlannedAction::Wait,
                        ApprovalDecision::Deny { reason } => {
                            PlannedAction::Answer(Err(ToolFailure::Denied { why: reason }))
                        }
                    },
                }
            }
        },
    };
    Ok(ToolPlan {
        planned: recover_started_tool(run, &call, planned),
        call,
        guidance,
    })
}

async fn request_approval(
    run: &LiveRun,
    node: NodeId,
    request: &ToolRequest,
    why: &str,
) -> ApprovalDecision {
    match run.resume_state.decision(node) {
        Some(decision) => decision.clone(),
        None => {
            let asked = run.agent.approver.decide(request, why);
            run.abort
                .run_until_aborted(asked)
                .await
                .unwrap_or(ApprovalDecision::Later)
        }
    }
}

/// A tool that was begun by a process that died: as its policy says.
fn recover_started_tool(
    run: &LiveRun,
    call: &UnansweredCall,
    planned: PlannedAction,
) -> PlannedAction {
    let PlannedAction::Tool(permit) = &planned else {
        return planned;
    };
    if !run.resume_state.has_started_tool(call.node) {
        return planned;
    }
    match permit.rerun_policy() {
        Rerun::Again => planned,
        Rerun::Ask => match run.resume_state.decision_since_start(call.node) {
            Some(ApprovalDecision::Allow) => planned,
            Some(ApprovalDecision::Deny { reason }) => {
                PlannedAction::Answer(Err(ToolFailure::Denied {
                    why: reason.clone(),
                }))
            }
            _ => PlannedAction::Wait,
        },
        Rerun::Unknown => PlannedAction::Answer(Err(ToolFailure::from_message(format_args!(
            "{} was begun and cut off: nobody knows whether it did its work; look before calling it again",
            permit.tool()
        )))),
    }
}

/// Which tool a call reaches, and whether the policy lets it run.
fn resolve_call(run: &LiveRun, call: &UnansweredCall) -> CallTarget {
    let name = &call.call.name;
    let function = run.session.layers().find_function(name);
    let offered = function.is_some_and(|(_, function)| function.offered == OfferedTo::Model);
    let delegated = run.agent.agents.contains_key(name);
    if !offered && !delegated {
        let resolved = run.agent.tools.resolve_call(
            &ToolsCall::from(&call.call),
            &call.call.call_id,
            &run.loaded,
        );
        return match resolved {
            Err(failure) => CallTarget::Failed(failure),
            Ok(Resolution::Ask(pending)) => CallTarget::Reached {
                planned: PlannedAction::Wait,
                request: pending.tool_request(),
                why: Some(String::new()),
                pending: Some(pending),
            },
            Ok(Resolution::Allowed(Allowed::Run(permit))) => CallTarget::Reached {
                request: permit.tool_request(),
                planned: PlannedAction::Tool(permit),
                why: None,
                pending: None,
            },
            Ok(Resolution::Allowed(Allowed::Load(kit))) => CallTarget::Reached {
                request: layer_tool_request(call, &Raw::null()),
                planned: PlannedAction::Load(kit),
                why: None,
                pending: None,
            },
        };
    }
    let verdict = run
        .agent
        .tools
        .policy()
        .decide_name(&ToolId::flat(name))
        .verdict;
    if verdict == PolicyVerdict::Deny {
        let why = format!("{name} is denied");
        return CallTarget::Failed(ToolFailure::Denied { why });
    }
    let read = match arguments::parse_arguments(&call.call.arguments) {
        Ok(read) => read.raw,
        Err(error) => {
            let why = format!("{name}: {error}");
            return CallTarget::Failed(ToolFailure::BadArguments { why });
        }
    };
    let planned = match delegated {
        false => PlannedAction::Function(read.clone()),
        true => match read.parse_as::<DelegatedTask>() {
            Ok(task) => PlannedAction::Task(task.task),
            Err(_) => {
                let why = format!("{name}: expected an object with the text \"task\"");
                return CallTarget::Failed(ToolFailure::BadArguments { why });
            }
        },
    };
    CallTarget::Reached {
        request: layer_tool_request(call, &read),
        planned,
        why: (verdict == PolicyVerdict::Ask).then(String::new),
        pending: None,
    }
}

/// Where a call leads.
enum CallTarget {
    /// Nowhere.
    Failed(ToolFailure),
    /// To something that may run, or about which somebody is to be asked if there is a `why`.
    Reached {
        planned: PlannedAction,
        request: ToolRequest,
        why: Option<String>,
        pending: Option<PendingApproval>,
    },
}

#[derive(serde::Deserialize)]
struct DelegatedTask {
    task: String,
}

fn layer_tool_request(call: &UnansweredCall, arguments: &Raw) -> ToolRequest {
    ToolRequest {
        tool: call.call.name.clone(),
        called: call.call.name.clone(),
        call_id: call.call.call_id.clone(),
        arguments: arguments.clone(),
    }
}

/// What was asked about, once it is allowed.
fn approved_action(planned: PlannedAction, pending: Option<PendingApproval>) -> PlannedAction {
    match pending.map(PendingApproval::approve) {
        None => planned,
        Some(Allowed::Run(permit)) => PlannedAction::Tool(permit),
        Some(Allowed::Load(kit)) => PlannedAction::Load(kit),
    }
}
