//! Resumes an open run from what is stored, as if no process had died in between.
//!
//! Everything is read from the run's branch: its record, its nodes, its state. Not here: listing runs
//! (`crate::record`), and what happens to a tool that was interrupted (`decide_call`).

use std::time::{Duration, Instant};

use contexture_engine::{BranchClaim, Conversation, EngineError};
use contexture_ir::{BranchName, Raw, RunId};
use contexture_store::{NodeState, PathEnd, StateChange, StateKey, StateRequest};
use contexture_tools::LoadedToolkits;
use serde::de::DeserializeOwned;

use crate::agent::Agent;
use crate::error::RunError;
use crate::execution::{
    LiveRun, NextStep, ResumeState, RunPath, SideUsageLog, answer_texts, json_bytes, load_usage,
    next_step,
};
use crate::limits::RunUsage;
use crate::record::{
    RUN_STATE_VERSION, RunEntry, RunRecord, RunStatus, StoredRunEnd, run_key, side_usage_key,
    stop_key, value_key,
};
use crate::steps::abandon::close_entry;
use crate::steps::begin::{claim_branch, release};
use crate::steps::cancel::{cancel_reason, clear_request};
use crate::steps::finish::finish_run;
use crate::steps::queue::{begin_queued, clear_input};
use crate::tasks::Abort;

/// State key of the loaded toolkits. It does not contain the run, so toolkits stay loaded for the next run on the path.
const LOADED_TOOLKITS_KEY: &str = "@toolkits";

/// Resumes an open run where it was interrupted, or where it waits; one that is queued begins. `chat` is any handle on its conversation.
///
/// # Errors
/// [`RunError::ItemMismatch`] if the run does not exist or has ended; [`RunError::Busy`] while another driver has it;
/// [`RunError::Agent`] if it belongs to another agent; [`RunError::Ended`] if another turn overtook it; [`RunError::Engine`].
pub(crate) async fn resume(
    chat: &Conversation,
    id: RunId,
    agent: &Agent,
) -> Result<LiveRun, RunError> {
    let no_open_run = |found: &str| RunError::ItemMismatch {
        subject: format!("run {id}"),
        expected: "an open run of this conversation".to_owned(),
        found: found.to_owned(),
    };
    let entry = RunEntry::load(chat, id).await?;
    let entry = entry.ok_or_else(|| no_open_run("no run of this id"))?;
    agent.check_name(&entry.agent)?;
    if !entry.status.is_open() {
        return Err(no_open_run("a run that has ended"));
    }
    let branch = BranchName::new(&entry.branch).map_err(EngineError::from)?;
    // The given handle itself where it is on the run's branch, as at the beginning of a run: what is set on it is said. The
    // entry names the branch; a handle on another one says something else.
    let on_branch = match chat.branch() == branch {
        true => chat.clone(),
        false => chat.for_branch(branch),
    };
    // Before anything is read: what another driver appends until then belongs to the run.
    let mut claim = claim_branch(&on_branch).await?;
    match resume_claimed(&claim, entry, id, agent).await {
        Ok(Some(mut run)) => {
            run.claim = Some(claim);
            end_if_overtaken(run).await
        }
        Ok(None) => {
            release(&mut claim).await;
            Err(no_open_run("a run that has ended"))
        }
        Err(error) => {
            release(&mut claim).await;
            Err(error.or_superseded())
        }
    }
}

/// Loads the run from its branch, which is claimed, or begins it if it is queued; `None` if it has ended.
async fn resume_claimed(
    claim: &BranchClaim,
    entry: RunEntry,
    id: RunId,
    agent: &Agent,
) -> Result<Option<LiveRun>, RunError> {
    let chat = claim.conversation();
    if let Some(run) = load_run(chat, id, agent, Abort::new()).await? {
        if entry.status != RunStatus::Waiting {
            // A process may have died between the first append and this.
            clear_input(chat, id).await;
        }
        return Ok(Some(run));
    }
    // A process died between the end node and the entry, or between the entry and the first append. Only the entry
    // is wrong, and lists would show the run as open forever.
    let ended = match StoredRunEnd::load(chat, id).await? {
        Some((_, ended)) => ended,
        None => match cancel_reason(chat, id).await? {
            // Before its input is stored: nobody wants an answer to it any more.
            Some(reason) => StoredRunEnd::aborted_before_start(chat.engine().now_ms(), &reason),
            None => match begin_queued(claim, id, agent).await? {
                Some(run) => return Ok(Some(run)),
                None => {
                    StoredRunEnd::aborted_before_start(chat.engine().now_ms(), "it never began")
                }
            },
        },
    };
    // Who stood still since the branch was looked at must not end what another has begun.
    if !claim.is_current().await? {
        return Err(RunError::Superseded { output: None });
    }
    close_entry(chat, id, entry, ended).await?;
    clear_request(chat, id).await;
    Ok(None)
}

/// Ends a run whose calls are open behind another turn: what its tools did would answer a question of the past.
async fn end_if_overtaken(mut run: LiveRun) -> Result<LiveRun, RunError> {
    if !run.is_overtaken {
        return Ok(run);
    }
    let error = RunError::Ended {
        reason: format!(
            "another turn was stored on its branch while calls of run {} were open",
            run.id
        ),
    };
    finish_run(&mut run, RunStatus::Aborted, Some(&error)).await?;
    Err(error)
}

/// Claims the branch of a run again that this handle drove before, and reads what was stored since.
pub(crate) async fn reclaim(run: &mut LiveRun) -> Result<(), RunError> {
    let mut claim = claim_branch(&run.chat).await?;
    let chat = claim.conversation().clone();
    let loaded = load_run(&chat, run.id, &run.agent, run.abort.clone()).await;
    match loaded {
        Ok(Some(mut fresh)) => {
            fresh.channels = run.channels.clone();
            if let Some(of_parent) = run.children.above() {
                fresh.join_parent(of_parent);
            }
            fresh.durable_step_counts = std::mem::take(&mut run.durable_step_counts);
            fresh.claim = Some(claim);
            *run = fresh;
            Ok(())
        }
        Ok(None) => {
            release(&mut claim).await;
            run.end = StoredRunEnd::load(&chat, run.id).await?.map(|(_, end)| end);
            run.check_open()?;
            Err(RunError::Ended {
                reason: format!("run {} has ended elsewhere", run.id),
            })
        }
        Err(error) => {
            release(&mut claim).await;
            Err(error.or_superseded())
        }
    }
}

/// Counts the answers that an earlier driver paid for after it was superseded, which this one could not know of.
pub(crate) async fn count_late_answers(run: &mut LiveRun) -> Result<(), RunError> {
    let base = run
        .record
        .base
        .as_deref()
        .and_then(|base| base.parse().ok());
    let path = RunPath::load(&run.chat, run.id, base, run.record.started_ms).await?;
    let state = run.load_run_state().await?;
    let stored = load_usage(&run.chat, &path, &state).await?;
    run.usage = RunUsage {
        steps: run.usage.steps.max(stored.steps),
        ..stored
    };
    Ok(())
}

/// Loads an open run from its branch; `None` if the branch holds no record of it.
pub(crate) async fn load_run(
    chat: &Conversation,
    id: RunId,
    agent: &Agent,
    abort: Abort,
) -> Result<Option<LiveRun>, RunError> {
    let request = StateRequest::all_entries(PathEnd::Branch(chat.branch()));
    let store = chat.engine().store();
    let state = store.read_state(chat.owner(), chat.id(), request).await;
    let state = state.map_err(EngineError::from)?;
    // The record is state of the branch's head exactly while the run is open: without it there is nothing to resume.
    let Some(record) = state.loaded_value(&run_key(id)?) else {
        return Ok(None);
    };
    let record: RunRecord = parse_state(id, record)?;
    agent.check_name(&record.agent)?;
    let base = record.base.as_ref().map(|base| base.parse());
    let base = base
        .transpose()
        .map_err(|_| stored_state_error(id, "its base is no node id".to_owned()))?;
    let began_ms = record.started_ms;
    // The record says where the run began, so only later nodes are read.
    let path = RunPath::load(chat, id, base, began_ms).await?;
    let chat = &agent.view_of(chat);
    let session = chat.layer_session(Some(record.run_scope(id))).await?;
    let side_usage = match state.loaded_value(&side_usage_key(id)?) {
        Some(stored) => parse_state(id, stored)?,
        None => SideUsageLog::new(),
    };
    let mut run = LiveRun::new(
        chat.clone(),
        agent.clone(),
        id,
        record,
        session,
        abort,
        side_usage,
    )?;
    run.was_resumed = true;
    restore_usage(&mut run, &path, &state, began_ms).await?;
    restore_next_step(&mut run, &path, &state)?;
    run.loaded = stored_toolkits(&state)?;
    Ok(Some(run))
}

/// Restores the run's usage: tokens and cost from its answers, time from its nodes.
async fn restore_usage(
    run: &mut LiveRun,
    path: &RunPath,
    state: &NodeState,
    began_ms: i64,
) -> Result<(), RunError> {
    run.usage = load_usage(&run.chat, path, state).await?;
    run.step = path.step_count();
    run.answers = path.answer_count();
    run.rejected_answers = path.rejected_answer_count();
    // Earlier processes were alive until the last node at least. Time after it is not counted, because none may have
    // been running.
    let created = path.nodes.iter().map(|node| node.created_ms);
    let last_ms = created.max().unwrap_or(began_ms);
    // Negative if the clock was set back.
    let elapsed_ms = u64::try_from(last_ms.saturating_sub(began_ms)).unwrap_or(0);
    run.earlier_elapsed = Duration::from_millis(elapsed_ms);
    run.resumed_at = Instant::now();
    Ok(())
}

/// Restores the next step, and what stop conditions and approvals depend on.
fn restore_next_step(run: &mut LiveRun, path: &RunPath, state: &NodeState) -> Result<(), RunError> {
    let (id, nodes) = (run.id, &path.nodes);
    let next = match state.loaded_value(&stop_key(id)?) {
        // A layer stopped the run with its last answer; the path alone does not show that.
        Some(reason) => NextStep::End {
            text: serde_json::from_slice(reason).unwrap_or_default(),
        },
        None => next_step(id, nodes)?,
    };
    run.is_stopped = state.loaded_value(&stop_key(id)?).is_some();
    run.value = match state.loaded_value(&value_key(id)?) {
        Some(value) => Some(
            Raw::parse(String::from_utf8_lossy(value))
                .map_err(|error| stored_state_error(id, error.to_string()))?,
        ),
        None => None,
    };
    // `set_next_step` below adds the text of the last answer if that answer ends the run.
    run.answer_texts = match &next {
        NextStep::End { .. } => answer_texts(id, path.before_last_answer())?,
        NextStep::Ask { .. } | NextStep::Run(_) => answer_texts(id, nodes)?,
    };
    // For stop conditions and for the caller, as they were when the earlier process received the answer.
    run.last_text = run.answer_texts.last().cloned();
    run.set_next_step(next);
    // A step that began after the last answer proves that the stop condition was evaluated for that answer and did not
    // hold.
    run.has_unchecked_answer = path.ends_with_answer();
    let calls: Vec<_> = match &run.next_step {
        NextStep::Run(calls) => calls.calls.iter().map(|call| call.node).collect(),
        NextStep::Ask { .. } | NextStep::End { .. } => Vec::new(),
    };
    run.is_overtaken = matches!(run.next_step, NextStep::Run(_)) && path.is_overtaken();
    run.resume_state = ResumeState::from_path(id, nodes, state, calls.into_iter())?;
    Ok(())
}

/// Reads the toolkits that were loaded on this path.
fn stored_toolkits(state: &NodeState) -> Result<LoadedToolkits, RunError> {
    let key = StateKey::new(LOADED_TOOLKITS_KEY).map_err(EngineError::from)?;
    // The key does not contain the run, so this includes toolkits that an earlier run on this path loaded.
    let loaded = state.loaded_value(&key);
    // Unreadable means not loaded: the model can load a toolkit again, so there is no reason to fail the run.
    Ok(loaded
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_default())
}

fn parse_state<T: DeserializeOwned>(run: RunId, bytes: &[u8]) -> Result<T, EngineError> {
    serde_json::from_slice(bytes).map_err(|error| stored_state_error(run, error.to_string()))
}

fn stored_state_error(run: RunId, reason: String) -> EngineError {
    EngineError::StoredState {
        key: format!("run {run}"),
        reason,
    }
}

/// The change of state that stores which toolkits are loaded.
pub(crate) fn loaded_toolkits_change(run: &LiveRun) -> Result<StateChange, RunError> {
    let key = StateKey::new(LOADED_TOOLKITS_KEY).map_err(EngineError::from)?;
    Ok(StateChange::put_entry(
        key,
        RUN_STATE_VERSION,
        json_bytes(&run.loaded),
    ))
}
