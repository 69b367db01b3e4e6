//! Child runs: each on a branch of its own, given a task by its parent, returning a text or a value.
//!
//! A child's id derives from its call or name, so a resumed parent finds the child it had, open or ended, instead of
//! starting a second one.

use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, LayerSession, RunScope};
use contexture_ir::{NodeId, RunId};
use contexture_layers::{ChildEnd, ChildResult, RunEnd};
use contexture_store::{
    Activation, BranchLabel, Error as StoreError, NewBranch, Node, PathEnd, RefChange, StateChange,
};

use crate::agent::{Agent, ChildHistory, RunEventKind, SubAgent, Turn, TurnEnd};
use crate::error::RunError;
use crate::execution::{
    LiveRun, SideUsageLog, UnansweredCall, UnansweredCalls, json_bytes, user_message,
};
use crate::record::{
    RUN_STATE_VERSION, RunEntry, RunRecord, RunStatus, StoredRunEnd, child_branch, child_id,
    child_key, head_to_string, state_key,
};
use crate::steps::begin::{claim_child_branch, release};
use crate::steps::resume::load_run;
use crate::tools::{ToolFailure, ToolOutput};

/// A child of a call, ready to be driven.
pub(crate) enum OpenedChild {
    Ready(Box<LiveRun>),
    /// It could not be started; the model is told why.
    Failed(ToolFailure),
}

/// The outcome of a task that was given to another agent.
pub(crate) enum SubAgentOutcome {
    /// The child ended.
    Done {
        result: Result<ToolOutput, ToolFailure>,
        changes: Vec<StateChange>,
    },
    /// These calls wait for a person's decision.
    Waits(Vec<NodeId>),
}

/// Starts a child run, or resumes the one with this name. See [`Run::spawn_child`](crate::Run::spawn_child).
///
/// # Errors
/// [`RunError::Depth`] if the child would have more than 64 ancestors; [`RunError::Engine`].
pub(crate) async fn spawn_child(
    run: &mut LiveRun,
    name: &str,
    agent: &SubAgent,
    task: &str,
) -> Result<LiveRun, RunError> {
    let base = match agent.history {
        ChildHistory::Fresh => None,
        ChildHistory::Forked => run.last_head(),
    };
    let id = child_id(run.id, name.as_bytes());
    open_child_run(run, id, agent, base, task).await
}

/// Records the end of a child. See [`Run::join_child`](crate::Run::join_child).
///
/// # Errors
/// [`RunError::Engine`].
pub(crate) async fn join_child(
    run: &mut LiveRun,
    child: &LiveRun,
    turn: &Result<Turn, RunError>,
) -> Result<ChildResult, RunError> {
    if let Ok(Turn {
        end: TurnEnd::Waiting { .. },
        ..
    }) = turn
    {
        // A child that waits has not ended, so there is nothing to collect yet.
        return Ok(ChildResult::Keep);
    }
    if run
        .load_state_value(&child_key(run.id, child.id)?)
        .await?
        .is_some()
    {
        return Ok(ChildResult::Keep);
    }
    // A stored usage marks the child as joined, so usage is never counted twice.
    let (made, changes) = collect_child_result(run, child, turn).await?;
    run.append_state("child", changes).await?;
    Ok(made)
}

/// Opens the child that a call gives its task to.
pub(crate) async fn open_sub_agent(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    task: &str,
) -> Result<OpenedChild, RunError> {
    let Some(agent) = run.agent.agents.get(&call.call.name).cloned() else {
        let reason = format!("{} is no agent", call.call.name);
        return Ok(OpenedChild::Failed(ToolFailure::Unknown { reason }));
    };
    let base = match agent.history {
        ChildHistory::Fresh => None,
        ChildHistory::Forked => of.base,
    };
    let id = child_id(run.id, call.node.as_bytes());
    match open_child_run(run, id, &agent, base, task).await {
        Ok(child) => Ok(OpenedChild::Ready(Box::new(child))),
        // Guards against agents that call one another endlessly: the model gets the error, and can answer by itself.
        Err(error @ RunError::Depth { .. }) => {
            Ok(OpenedChild::Failed(ToolFailure::from_message(error)))
        }
        Err(error) => Err(error),
    }
}

/// Collects what became of the task of a call.
pub(crate) async fn collect_sub_agent(
    run: &mut LiveRun,
    child: &LiveRun,
    turn: Result<Turn, RunError>,
) -> Result<SubAgentOutcome, RunError> {
    match turn {
        // The child stays open. An output now would complete a call that is not finished.
        Err(error) if error.leaves_open() => return Err(error),
        Ok(Turn {
            end: TurnEnd::Waiting { calls },
            ..
        }) => return Ok(SubAgentOutcome::Waits(calls)),
        _ => {}
    }
    let (made, changes) = collect_child_result(run, child, &turn).await?;
    let result = match made {
        ChildResult::Keep => child_output(turn),
        ChildResult::Replace(text) => Ok(text.into()),
    };
    Ok(SubAgentOutcome::Done { result, changes })
}

/// What a child gives its parent: its value if it has one, otherwise its text.
fn child_text(turn: &Turn) -> String {
    let value = turn.value.as_ref().map(|value| value.get().to_owned());
    value.unwrap_or_else(|| turn.text.clone())
}

/// Returns a child's output for its parent.
fn child_output(turn: Result<Turn, RunError>) -> Result<ToolOutput, ToolFailure> {
    match turn {
        Ok(turn) => Ok(child_text(&turn).into()),
        Err(RunError::Cancelled(cancelled)) => Err(cancelled.into()),
        Err(error) => Err(ToolFailure::from_message(error)),
    }
}

/// Notifies layers of a child's end. Returns what they make of its result, and the change that stores its usage, which marks it
/// as joined.
async fn collect_child_result(
    run: &mut LiveRun,
    child: &LiveRun,
    turn: &Result<Turn, RunError>,
) -> Result<(ChildResult, Vec<StateChange>), RunError> {
    let spent = child.usage();
    let end = ChildEnd {
        run: child.id,
        end: run_end(turn.as_ref().err()),
        result: turn.as_ref().ok().map(child_text),
        usage: spent.tokens.into(),
    };
    let made = run.session.on_return(&child.session, &end).await?;
    // In memory now; on the tree with the change below, from where a resumed parent reads it.
    run.usage.roll_up(&spent);
    // In this order: its siblings see its usage twice for a moment, but never not at all.
    run.children.note_own(run.usage());
    run.children.remove(child.id);
    let put = StateChange::put_entry(
        child_key(run.id, child.id)?,
        RUN_STATE_VERSION,
        json_bytes(&spent),
    );
    Ok((made, vec![put]))
}

/// Opens a child: an open one is resumed, an ended one is restored, otherwise a new one is started.
async fn open_child_run(
    run: &mut LiveRun,
    id: RunId,
    agent: &SubAgent,
    base: Option<NodeId>,
    task: &str,
) -> Result<LiveRun, RunError> {
    let depth = run.record.depth + 1;
    // Before the branch is created, so a call that goes too deep leaves nothing behind.
    RunError::check_depth(depth as usize)?;
    let chat = open_child_branch(run, id, base).await?;
    let mut claim = claim_child_branch(run, &chat).await?;
    let chat = claim.conversation().clone();
    match open_claimed_child(run, (chat, id), agent, base, task).await {
        Ok(mut child) => {
            match child.stored_end {
                Some(_) => release(&mut claim).await,
                None => child.claim = Some(claim),
            }
            Ok(child)
        }
        Err(error) => {
            release(&mut claim).await;
            Err(error)
        }
    }
}

async fn open_claimed_child(
    run: &mut LiveRun,
    (chat, id): (Conversation, RunId),
    agent: &SubAgent,
    base: Option<NodeId>,
    task: &str,
) -> Result<LiveRun, RunError> {
    let depth = run.record.depth + 1;
    run.notify_observer(|| RunEventKind::Spawned { child: id });
    let config = child_config(run, agent);
    if let Some(mut child) = load_run(&chat, id, &config, run.abort.child()).await? {
        adopt_child(run, &mut child);
        return Ok(child);
    }
    let ended = StoredRunEnd::load(&chat, id).await?;
    let chat = config.view_of(&chat);
    let record = RunRecord {
        agent: config.name.clone(),
        parent: Some(run.id.to_string()),
        depth,
        budget: config.budget,
        started_ms: chat.engine().now_ms(),
        base: head_to_string(base),
        has_step_nodes: true,
    };
    let place = record.run_scope(id);
    let session = match &ended {
        None => chat.child_session(place, &run.session).await?,
        Some((node, _)) => session_before_end(&chat, node, place).await?,
    };
    let mut child = LiveRun::new(
        chat,
        config,
        id,
        record,
        session,
        run.abort.child(),
        SideUsageLog::new(),
    )?;
    adopt_child(run, &mut child);
    match ended {
        None => {
            let state = copied_state(run, id).await?;
            child.store_input(vec![user_message(task)], state).await?;
        }
        Some((_, ended)) => restore_ended_child(&mut child, ended).await?,
    }
    Ok(child)
}

/// Gives a child what it shares with its parent: the channels, and what is left of the budget.
fn adopt_child(run: &LiveRun, child: &mut LiveRun) {
    run.children.note_own(run.usage());
    child.channels = run.channels.clone();
    child.join_parent(Arc::clone(&run.children));
}

/// Returns the change that gives a new child a copy of its parent's own state; `None` if the parent has none.
async fn copied_state(run: &LiveRun, child: RunId) -> Result<Option<StateChange>, RunError> {
    let state = run.load_state_value(&state_key(run.id)?).await?;
    let key = state_key(child)?;
    Ok(state.map(|state| StateChange::put_entry(key, RUN_STATE_VERSION, state)))
}

/// Returns the child's agent, with a budget within its parent's and with an observer.
fn child_config(run: &LiveRun, agent: &SubAgent) -> Agent {
    let mut config = agent.agent.clone();
    // A child gets no more than its parent has left when it starts.
    config.budget = run
        .record
        .budget
        .limit_child(&run.usage(), &agent.agent.budget);
    // One observer sees the whole tree, unless the sub-agent has one of its own.
    config.observer = config.observer.or_else(|| run.agent.observer.clone());
    config.values = config.values.over(&run.agent.values);
    config
}

/// Opens the layers with the states before the end node, because restoring calls `on_complete` again.
async fn session_before_end(
    chat: &Conversation,
    end: &Node,
    place: RunScope,
) -> Result<LayerSession, RunError> {
    let at = end
        .parent
        .map_or(PathEnd::Branch(chat.branch()), PathEnd::Node);
    Ok(chat.layer_session_at(at, Some(place)).await?)
}

/// Restores a child that ended before its parent could store that: its result, its usage, and its layers' last states.
async fn restore_ended_child(run: &mut LiveRun, ended: StoredRunEnd) -> Result<(), RunError> {
    let entry = RunEntry::new(run.id, &run.record, &run.chat.branch());
    let entry = ended.clone().apply_to_entry(entry);
    // The process may have died between the end node and the entry, so the entry is written again.
    entry.store_entry(&run.chat, run.id).await?;
    let end = match ended.status {
        RunStatus::Aborted => RunEnd::Aborted {
            reason: ended.reason.clone(),
        },
        RunStatus::Failed => RunEnd::Failed {
            error: ended.reason.clone().unwrap_or_default(),
        },
        RunStatus::Completed | RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => {
            RunEnd::Completed
        }
    };
    // Gives the layers the states they had when the child ended; the parent's `on_return` reads them.
    run.session.on_complete(&end).await;
    // States outside the tree were stored when the child ended; the hook above would change them a second time.
    run.session.revert_shared_changes();
    run.usage = ended.usage.unwrap_or_default();
    run.earlier_elapsed = run.usage.elapsed;
    run.last_text.clone_from(&ended.result);
    run.value.clone_from(&ended.value);
    run.stored_end = Some(ended);
    Ok(())
}

/// Opens the branch of a child, and creates it if needed.
async fn open_child_branch(
    run: &LiveRun,
    id: RunId,
    base: Option<NodeId>,
) -> Result<Conversation, RunError> {
    let branch = child_branch(id)?;
    let new = NewBranch {
        base,
        label: BranchLabel::Named(branch.clone()),
        // A child works in the background: the parent's branch stays the active one.
        activate: Activation::Keep,
    };
    let (engine, owner) = (run.chat.engine(), run.chat.owner());
    let made = engine.store().change_ref(
        owner,
        run.chat.id(),
        RefChange::CreateBranch(new),
        engine.now_ms(),
    );
    match made.await {
        // It exists if an earlier process died after creating it.
        Ok(_) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(error) => return Err(EngineError::from(error).into()),
    }
    let chat = run.chat.for_branch(branch);
    if base.is_some() {
        // A child that sees its parent's history sees what its parent is told too, which need not be stored yet.
        chat.adopt_settings(&run.chat);
    }
    Ok(chat)
}

/// Returns how a run ended, in the form that layers get.
pub(crate) fn run_end(error: Option<&RunError>) -> RunEnd {
    match error {
        None => RunEnd::Completed,
        Some(RunError::Cancelled(cancelled)) => RunEnd::Aborted {
            reason: Some(cancelled.reason.to_string()),
        },
        Some(error) => RunEnd::Failed {
            error: error.to_string(),
        },
    }
}
