//! Runs below a run: each on a branch of its own, with what its parent hands over, giving back a text.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::{NodeId, RunId};
use contexture_layers::{ChildEnd, RunEnd};
use contexture_store::{
    Activation, BranchLabel, Error as StoreError, NewBranch, PathEnd, RefChange, StateChange,
};

use crate::agent::{ChildHistory, RunEventKind, SubAgent, Turn, TurnEnd};
use crate::error::RunError;
use crate::execution::{
    LiveRun, SideUsageLog, UnansweredCall, UnansweredCalls, json_bytes, user_message,
};
use crate::record::{
    RUN_STATE_VERSION, RunEntry, RunRecord, RunStatus, StoredRunEnd, child_branch, child_id,
    child_key, head_to_string,
};
use crate::steps::resume::load_run;
use crate::steps::step_loop::drive;
use crate::tools::{ToolFailure, ToolOutput};

/// What became of a task that was given to another agent.
pub(crate) enum SubAgentOutcome {
    /// It is done, or cannot be.
    Done {
        result: Result<ToolOutput, ToolFailure>,
        changes: Vec<StateChange>,
    },
    /// These calls wait for a person's decision.
    Waits(Vec<NodeId>),
}

impl SubAgentOutcome {
    fn from_failure(failure: ToolFailure) -> Self {
        Self::Done {
            result: Err(failure),
            changes: Vec::new(),
        }
    }
}

/// Begins a child run, or takes up the one that was begun under this name: on a branch of its own, its budget within
/// what this run has left. Whoever drives it gives its end back by [`Run::join_child`].
///
/// # Errors
/// [`RunError::Depth`] below 64 ancestors; [`RunError::Engine`].
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

/// Takes back what a child gave: layers are told, and what it spent counts here. Done twice, also by a run that is
/// resumed, it does nothing new. One that waits has no end yet: nothing is taken back.
///
/// # Errors
/// [`RunError::Engine`].
pub(crate) async fn join_child(
    run: &mut LiveRun,
    child: &LiveRun,
    turn: &Result<Turn, RunError>,
) -> Result<(), RunError> {
    if let Ok(Turn {
        end: TurnEnd::Waiting { .. },
        ..
    }) = turn
    {
        return Ok(());
    }
    if run
        .load_state_value(&child_key(run.id, child.id)?)
        .await?
        .is_some()
    {
        return Ok(());
    }
    let changes = collect_child_result(run, child, turn).await?;
    run.append_state("child", changes).await
}

/// The task of a call, done by another agent.
pub(crate) async fn run_sub_agent(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    task: &str,
) -> Result<SubAgentOutcome, RunError> {
    let Some(agent) = run.agent.agents.get(&call.call.name).cloned() else {
        let why = format!("{} is no agent", call.call.name);
        return Ok(SubAgentOutcome::from_failure(ToolFailure::Unknown { why }));
    };
    let base = match agent.history {
        ChildHistory::Fresh => None,
        ChildHistory::Forked => of.base,
    };
    let id = child_id(run.id, call.node.as_bytes());
    let mut child = match open_child_run(run, id, &agent, base, task).await {
        Ok(child) => child,
        Err(error @ RunError::Depth { .. }) => {
            return Ok(SubAgentOutcome::from_failure(ToolFailure::from_message(
                error,
            )));
        }
        Err(error) => return Err(error),
    };
    let turn = Box::pin(drive(&mut child)).await;
    match turn {
        // It is open still, and so is this run.
        Err(error @ RunError::Engine(EngineError::Store(_))) => return Err(error),
        Ok(Turn {
            end: TurnEnd::Waiting { calls },
            ..
        }) => return Ok(SubAgentOutcome::Waits(calls)),
        _ => {}
    }
    let changes = collect_child_result(run, &child, &turn).await?;
    let result = match turn {
        Ok(turn) => Ok(turn
            .value
            .map_or(turn.text, |value| value.get().to_owned())
            .into()),
        Err(RunError::Cancelled(cancelled)) => Err(cancelled.into()),
        Err(error) => Err(ToolFailure::from_message(error)),
    };
    Ok(SubAgentOutcome::Done { result, changes })
}

async fn collect_child_result(
    run: &mut LiveRun,
    child: &LiveRun,
    turn: &Result<Turn, RunError>,
) -> Result<Vec<StateChange>, RunError> {
    let spent = child.usage();
    let end = ChildEnd {
        run: child.id,
        end: run_end(turn.as_ref().err()),
        result: turn.as_ref().ok().map(|turn| turn.text.clone()),
        usage: spent.tokens.into(),
    };
    run.session.on_return(&child.session, &end).await?;
    run.usage.roll_up(&spent);
    let put = StateChange::put_entry(
        child_key(run.id, child.id)?,
        RUN_STATE_VERSION,
        json_bytes(&spent),
    );
    Ok(vec![put])
}

async fn open_child_run(
    run: &mut LiveRun,
    id: RunId,
    agent: &SubAgent,
    base: Option<NodeId>,
    task: &str,
) -> Result<LiveRun, RunError> {
    let depth = run.record.depth + 1;
    RunError::check_depth(depth as usize)?;
    let chat = open_child_branch(run, id, base).await?;
    run.notify_observer(|| RunEventKind::Spawned { child: id });
    let mut config = agent.agent.clone();
    config.budget = run
        .record
        .budget
        .limit_child(&run.usage(), &agent.agent.budget);
    config.observer = config.observer.or_else(|| run.agent.observer.clone());
    if let Some(mut child) = load_run(&chat, id, &config, run.abort.child()).await? {
        child.channels = run.channels.clone();
        return Ok(child);
    }
    let ended = StoredRunEnd::load(&chat, id).await?;
    let record = RunRecord {
        agent: config.name.clone(),
        parent: Some(run.id.to_string()),
        depth,
        budget: config.budget,
        began_ms: chat.engine().now_ms(),
        base: head_to_string(base),
    };
    let place = record.run_scope(id);
    let session = match &ended {
        None => chat.child_session(place, &run.session).await?,
        // As its layers were before they were told of its end.
        Some((node, _)) => {
            let at = node
                .parent
                .map_or(PathEnd::Branch(chat.branch()), PathEnd::Node);
            chat.layer_session_at(at, Some(place)).await?
        }
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
    child.channels = run.channels.clone();
    match ended {
        None => child.store_input(vec![user_message(task)]).await?,
        Some((_, ended)) => restore_ended_child(&mut child, ended).await?,
    }
    Ok(child)
}

/// A child that has ended, and its parent does not know: what it gave and spent, and how its layers took it.
async fn restore_ended_child(run: &mut LiveRun, ended: StoredRunEnd) -> Result<(), RunError> {
    let entry = RunEntry::new(run.id, &run.record, &run.chat.branch());
    let entry = ended.clone().apply_to_entry(entry);
    entry.store_entry(&run.chat, run.id).await?;
    let end = match ended.status {
        RunStatus::Aborted => RunEnd::Aborted {
            reason: ended.why.clone(),
        },
        RunStatus::Failed => RunEnd::Failed {
            error: ended.why.clone().unwrap_or_default(),
        },
        RunStatus::Completed | RunStatus::Running | RunStatus::Waiting => RunEnd::Completed,
    };
    run.session.on_complete(&end).await;
    // Those outside the tree were stored with its end.
    run.session.revert_shared_changes();
    run.usage = ended.spent.unwrap_or_default();
    run.earlier_elapsed = run.usage.elapsed;
    run.last_text.clone_from(&ended.result);
    run.value.clone_from(&ended.value);
    run.stored_end = Some(ended);
    Ok(())
}

/// The branch of a child, made if it is not there.
async fn open_child_branch(
    run: &LiveRun,
    id: RunId,
    base: Option<NodeId>,
) -> Result<Conversation, RunError> {
    let branch = child_branch(id)?;
    let new = NewBranch {
        base,
        label: BranchLabel::Named(branch.clone()),
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
        Ok(_) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(error) => return Err(EngineError::from(error).into()),
    }
    Ok(run.chat.for_branch(branch))
}

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
