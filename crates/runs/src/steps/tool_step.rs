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

use crate::agent::RunEventKind;
use crate::error::RunError;
use crate::execution::{LiveRun, NextStep, UnansweredCall, UnansweredCalls, json_bytes};
use crate::record::{RUN_STATE_VERSION, started_key};
use crate::steps::decide_call::{PlannedAction, ToolPlan, decide_call};
use crate::steps::late_output::store_late_output;
use crate::steps::resume::loaded_toolkits_change;
use crate::steps::store_output::append_guidance;
use crate::steps::store_output::{call_layer_function, store_output};
use crate::steps::sub_agent::SubAgentOutcome;
use crate::steps::sub_agent::run_sub_agent;
use crate::tools::{Permit, ToolConcurrency, ToolFailure, ToolOutput, function_call_output};

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
        let node = plan.call.node;
        let waiting_below = execute_planned(run, &calls, plan, &mut plans).await?;
        if !waiting_below.is_empty() {
            left.insert(node);
            waits.extend(waiting_below);
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

/// Runs one call, or several in parallel. Returns the calls of child runs that wait; while there are any, this call
/// waits too.
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
    // Nothing starts for a call that is answered without running, so observers get no start event.
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
            return delegate_task(run, of, &call, &task, &guidance).await;
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
        PlannedAction::Wait => {}
    }
    Ok(Vec::new())
}

/// Gives the task of a call to a sub-agent. Returns the calls that wait there.
async fn delegate_task(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    task: &str,
    guidance: &str,
) -> Result<Vec<NodeId>, RunError> {
    let operation = Operation::for_tool(&call.call.name, &call.call.call_id);
    // Boxed: a child runs the same steps, so the future would contain itself.
    let delegated = Box::pin(run_sub_agent(run, of, call, task));
    let delegated = delegated.instrument(operation.span().clone()).await?;
    let (result, changes) = match delegated {
        SubAgentOutcome::Done { result, changes } => (result, changes),
        SubAgentOutcome::Waits(calls) => {
            operation.end(None);
            return Ok(calls);
        }
    };
    operation.end(result.as_ref().err().map(ToolFailure::kind));
    let output = append_guidance(function_call_output(&call.call.call_id, result), guidance);
    store_output(run, of, call, output, changes).await?;
    Ok(Vec::new())
}

/// Runs a tool, in parallel with the tools after it that allow it. Each output is stored while the others still run.
async fn run_tool_batch(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: UnansweredCall,
    permit: Permit,
    guidance: String,
    rest: &mut ToolPlans,
) -> Result<(), RunError> {
    let together = permit.tool_concurrency() == ToolConcurrency::Parallel;
    let marker = |run: &LiveRun, call: &UnansweredCall, permit: &Permit| {
        (permit.rerun_policy() != Rerun::Repeat).then(|| start_marker(run, call, permit))
    };
    let first = marker(run, &call, &permit);
    let mut batch = vec![(call, permit, guidance, first)];
    // Only adjacent calls: a tool that must run alone sees the effects of all calls before it, in the model's order.
    let runs_beside = |plan: &ToolPlan| matches!(&plan.planned, PlannedAction::Tool(permit) if permit.tool_concurrency() == ToolConcurrency::Parallel);
    while together && let Some(plan) = rest.next_if(runs_beside) {
        if let PlannedAction::Tool(permit) = plan.planned {
            let (node, call) = (plan.call.node, plan.call.call.clone());
            run.notify_observer(|| RunEventKind::ToolStarted { node, call });
            let marker = marker(run, &plan.call, &permit);
            batch.push((plan.call, permit, plan.guidance, marker));
        }
    }
    // The tools' future does not borrow `run`, which storing needs exclusively: appends stay sequential, because each
    // goes after the one before. The channel has room for all results, so no tool waits for the store.
    let (done, mut results) = mpsc::channel(batch.len());
    let (tools, context) = (Arc::clone(&run.agent.tools), run.context());
    let work = async move {
        let each = batch
            .into_iter()
            .map(async |(call, permit, guidance, start_marker)| {
                let result = tools.run_tool_in(permit, context.for_call(call.node)).await;
                let finished = ToolRun {
                    call,
                    start_marker,
                    guidance,
                    result,
                };
                // Cannot fail: the receiver outlives the tools. If storing failed, unread results are lost, and the error
                // is returned below.
                drop(done.send(finished).await);
            });
        join_all(each).await;
    };
    let store = async {
        while let Some(finished) = results.recv().await {
            store_result(run, of, finished).await?;
        }
        Ok(())
    };
    // Joined, not raced: a running tool is never dropped because storing another one's output failed.
    join(work, store).await.1
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
