//! Runs the calls of an answer: tools, functions of layers, other agents.
//!
//! All calls are decided first (`decide_call`), then run in the order of the answer; adjacent tools that allow it run
//! in parallel. Not here: what a tool is ([`crate::ToolBox`]), child runs (`sub_agent`), and how outputs are stored
//! (`store_output`).

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use contexture_ir::NodeId;
use contexture_layers::Rerun;
use contexture_store::StateChange;
use contexture_telemetry::Operation;
use futures_util::future::{join, join_all};
use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::agent::{RunEventKind, Turn};
use crate::context::RunContext;
use crate::error::RunError;
use crate::execution::{LiveRun, NextStep, UnansweredCall, UnansweredCalls, json_bytes};
use crate::record::{RUN_STATE_VERSION, started_key};
use crate::steps::decide_call::{PlannedAction, ToolPlan, decide_call};
use crate::steps::late_output::store_late_output;
use crate::steps::resume::loaded_toolkits_change;
use crate::steps::step_loop::drive;
use crate::steps::store_output::append_guidance;
use crate::steps::store_output::{call_layer_function, store_output};
use crate::steps::sub_agent::{OpenedChild, SubAgentOutcome, collect_sub_agent, open_sub_agent};
use crate::tools::{
    Permit, ToolBox, ToolConcurrency, ToolFailure, ToolOutput, function_call_output,
};

/// A call that runs, beside others where it allows that.
struct BatchedCall {
    call: UnansweredCall,
    guidance: String,
    work: CallWork,
}

/// What a call that runs is about.
enum CallWork {
    Tool {
        permit: Permit,
        start_marker: Option<Vec<u8>>,
    },
    /// A sub-agent works on its task.
    Child {
        child: Box<LiveRun>,
        operation: Operation,
    },
    /// A sub-agent could not be started.
    Failed(ToolFailure),
}

/// A call that has run.
enum FinishedCall {
    Tool(ToolRun),
    Child {
        call: UnansweredCall,
        guidance: String,
        child: Box<LiveRun>,
        turn: Result<Turn, RunError>,
    },
}

/// A call that stays open, because calls of its child run wait for a person.
struct WaitingBelow {
    call: NodeId,
    calls: Vec<NodeId>,
}

/// The result of a tool that ran.
struct ToolRun {
    call: UnansweredCall,
    /// The stored start marker, to be removed when the output is stored; `None` for a tool that needs none.
    start_marker: Option<Vec<u8>>,
    guidance: String,
    result: Result<ToolOutput, ToolFailure>,
}

type ToolPlans = Peekable<IntoIter<ToolPlan>>;

/// Runs calls, except those that wait for a person.
///
/// Returns the calls that wait, of this run and of child runs.
pub(crate) async fn run_calls(
    run: &mut LiveRun,
    calls: UnansweredCalls,
) -> Result<Vec<NodeId>, RunError> {
    let mut plans = Vec::new();
    for call in calls.calls.clone() {
        plans.push(decide_call(run, call).await?);
    }
    // A waiting call does not block the others of its answer: their outputs are stored now.
    let (waiting, plans): (Vec<ToolPlan>, Vec<ToolPlan>) = plans
        .into_iter()
        .partition(|plan| matches!(plan.planned, PlannedAction::Wait));
    // A step counts only if a call was handled, so a run that is resumed just to wait again uses no budget.
    if !plans.is_empty() {
        run.advance_to_step(calls.step);
    }
    store_start_markers(run, &plans).await?;
    // `waits` names calls that people decide, including those of child runs; `left` names this run's own calls that
    // stay open.
    let mut waits: Vec<NodeId> = waiting.iter().map(|plan| plan.call.node).collect();
    let mut left: BTreeSet<NodeId> = waits.iter().copied().collect();
    let mut plans = plans.into_iter().peekable();
    while let Some(plan) = plans.next() {
        for below in execute_planned(run, &calls, plan, &mut plans).await? {
            left.insert(below.call);
            waits.extend(below.calls);
        }
    }
    run.next_step = match waits.is_empty() {
        true => NextStep::Ask { refused: 0 },
        false => {
            let all = calls.calls.into_iter();
            NextStep::Run(UnansweredCalls {
                calls: all.filter(|call| left.contains(&call.node)).collect(),
                ..calls
            })
        }
    };
    Ok(waits)
}

/// Runs one call, or several in parallel. Returns those that wait for calls of their child runs.
async fn execute_planned(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    plan: ToolPlan,
    rest: &mut ToolPlans,
) -> Result<Vec<WaitingBelow>, RunError> {
    if matches!(
        plan.planned,
        PlannedAction::Tool(_) | PlannedAction::Task(_)
    ) {
        let is_shared = runs_beside_others(run, &plan);
        let mut batch = vec![plan];
        // Only adjacent calls: one that must run alone sees the effects of all calls before it, in the model's order.
        while is_shared && let Some(next) = rest.next_if(|next| runs_beside_others(run, next)) {
            batch.push(next);
        }
        return run_batch(run, of, batch).await;
    }
    let ToolPlan {
        call,
        planned,
        guidance,
    } = plan;
    // Nothing starts for a call that is answered without running, so observers get no start event.
    if matches!(planned, PlannedAction::Function(_) | PlannedAction::Load(_)) {
        notify_started(run, &call);
    }
    match planned {
        PlannedAction::Function(arguments) => {
            call_layer_function(run, of, &call, &arguments, &guidance).await?
        }
        PlannedAction::Load(kit) => {
            // In memory for the next model call, and in the path's state by the change below.
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
        // The others were run above.
        PlannedAction::Wait | PlannedAction::Tool(_) | PlannedAction::Task(_) => {}
    }
    Ok(Vec::new())
}

fn notify_started(run: &LiveRun, call: &UnansweredCall) {
    let (node, call) = (call.node, call.call.clone());
    run.notify_observer(|| RunEventKind::ToolStarted { node, call });
}

/// Whether a call may run beside others that may as well.
fn runs_beside_others(run: &LiveRun, plan: &ToolPlan) -> bool {
    let concurrency = match &plan.planned {
        PlannedAction::Tool(permit) => Some(permit.tool_concurrency()),
        PlannedAction::Task(_) => {
            let agent = run.agent.agents.get(&plan.call.call.name);
            agent.map(|agent| agent.concurrency)
        }
        _ => None,
    };
    concurrency == Some(ToolConcurrency::Parallel)
}

/// Runs calls of tools and sub-agents side by side. Each output is stored while the others still run. Returns the calls that
/// wait for calls of their child runs.
async fn run_batch(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    plans: Vec<ToolPlan>,
) -> Result<Vec<WaitingBelow>, RunError> {
    let mut batch = Vec::with_capacity(plans.len());
    for plan in plans {
        batch.extend(start_call(run, of, plan).await?);
    }
    // The calls' future does not borrow `run`, which storing needs exclusively: appends stay sequential, because each
    // goes after the one before. The channel has room for all results, so no call waits for the store.
    let (done, mut results) = mpsc::channel(batch.len().max(1));
    let (tools, context) = (Arc::clone(&run.agent.tools), run.context());
    let work = async move {
        let each = batch.into_iter().map(async |batched: BatchedCall| {
            let finished = run_batched_call(&tools, &context, batched).await;
            // Cannot fail: the receiver outlives the calls. If storing failed, unread results are lost, and the error
            // is returned below.
            drop(done.send(finished).await);
        });
        join_all(each).await;
    };
    let store = async {
        let mut waiting = Vec::new();
        while let Some(finished) = results.recv().await {
            waiting.extend(store_finished_call(run, of, finished).await?);
        }
        Ok(waiting)
    };
    // Joined, not raced: a running call is never dropped because storing another one's output failed.
    join(work, store).await.1
}

/// Prepares a call of a tool or a sub-agent; `None` for any other plan.
async fn start_call(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    plan: ToolPlan,
) -> Result<Option<BatchedCall>, RunError> {
    let ToolPlan {
        call,
        planned,
        guidance,
    } = plan;
    notify_started(run, &call);
    let work = match planned {
        PlannedAction::Tool(permit) => {
            let needs_marker = permit.rerun_policy() != Rerun::Repeat;
            CallWork::Tool {
                start_marker: needs_marker.then(|| start_marker(run, &call, &permit)),
                permit,
            }
        }
        PlannedAction::Task(task) => {
            let operation = Operation::for_tool(&call.call.name, &call.call.call_id);
            let span = operation.span().clone();
            let opening = open_sub_agent(run, of, &call, &task).instrument(span);
            match opening.await? {
                OpenedChild::Ready(child) => CallWork::Child { child, operation },
                OpenedChild::Failed(failure) => {
                    operation.end(Some(failure.kind()));
                    CallWork::Failed(failure)
                }
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(BatchedCall {
        call,
        guidance,
        work,
    }))
}

async fn run_batched_call(
    tools: &ToolBox,
    context: &RunContext,
    batched: BatchedCall,
) -> FinishedCall {
    let BatchedCall {
        call,
        guidance,
        work,
    } = batched;
    let (start_marker, result) = match work {
        CallWork::Tool {
            permit,
            start_marker,
        } => {
            let context = context.for_call(call.node);
            (start_marker, tools.run_tool_in(permit, context).await)
        }
        CallWork::Failed(failure) => (None, Err(failure)),
        CallWork::Child {
            mut child,
            operation,
        } => {
            // Boxed: a child runs the same steps, so the future would contain itself.
            let driven = Box::pin(drive(&mut child)).instrument(operation.span().clone());
            let turn = driven.await;
            operation.end(turn.as_ref().err().map(RunError::kind));
            return FinishedCall::Child {
                call,
                guidance,
                child,
                turn,
            };
        }
    };
    FinishedCall::Tool(ToolRun {
        call,
        start_marker,
        guidance,
        result,
    })
}

/// Stores the output of a call that has run; returns the call if calls of its child run wait.
async fn store_finished_call(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    finished: FinishedCall,
) -> Result<Option<WaitingBelow>, RunError> {
    let (call, guidance, child, turn) = match finished {
        FinishedCall::Tool(finished) => {
            store_result(run, of, finished).await?;
            return Ok(None);
        }
        FinishedCall::Child {
            call,
            guidance,
            child,
            turn,
        } => (call, guidance, child, turn),
    };
    match collect_sub_agent(run, &child, turn).await? {
        SubAgentOutcome::Waits(calls) => Ok(Some(WaitingBelow {
            call: call.node,
            calls,
        })),
        SubAgentOutcome::Done { result, changes } => {
            let output = function_call_output(&call.call.call_id, result);
            let output = append_guidance(output, &guidance);
            store_output(run, of, &call, output, changes).await?;
            Ok(None)
        }
    }
}

/// Stores a tool's output. The same transaction removes the start marker and stores a final value, so that a crash
/// leaves either all of it or none.
async fn store_result(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    finished: ToolRun,
) -> Result<(), RunError> {
    let mut changes = Vec::new();
    if finished.start_marker.is_some() {
        changes.push(StateChange::remove_entry(started_key(
            run.id,
            finished.call.node,
        )?));
    }
    // A successful tool may give the value that ends the run.
    if let Ok(ToolOutput {
        final_value: Some(value),
        ..
    }) = &finished.result
    {
        changes.extend(run.set_end_value(value.clone())?);
    }
    let output = function_call_output(&finished.call.call.call_id, finished.result);
    let output = append_guidance(output, &finished.guidance);
    let stored = store_output(run, of, &finished.call, output.clone(), changes.clone()).await;
    match stored.map_err(RunError::or_superseded) {
        // The tool did its work for nothing, unless its output can still be stored.
        Err(RunError::Superseded { .. }) => {
            let with = (finished.start_marker.as_deref(), changes);
            Err(store_late_output(run, of, &finished.call, output, with).await)
        }
        stored => stored,
    }
}

/// The start marker of a call's tool, as it is stored.
fn start_marker(run: &LiveRun, call: &UnansweredCall, permit: &Permit) -> Vec<u8> {
    json_bytes(&run.resume_state.start_marker(call.node, permit.tool()))
}

/// Stores start markers for tools that are not safe to repeat, before any of them starts.
async fn store_start_markers(run: &mut LiveRun, plans: &[ToolPlan]) -> Result<(), RunError> {
    // One append for all of them, before the first tool starts: a tool without a marker has certainly not run.
    let mut changes = Vec::new();
    for plan in plans {
        if let PlannedAction::Tool(permit) = &plan.planned
            // A tool that is safe to repeat needs no marker, which saves the append.
            && permit.rerun_policy() != Rerun::Repeat
        {
            let key = started_key(run.id, plan.call.node)?;
            changes.push(StateChange::put_entry(
                key,
                RUN_STATE_VERSION,
                start_marker(run, &plan.call, permit),
            ));
        }
    }
    match changes.is_empty() {
        true => Ok(()),
        false => run.append_state("started", changes).await,
    }
}
