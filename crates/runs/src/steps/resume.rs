//! Taking up what was left: which runs are open, and going on with one.

use std::time::{Duration, Instant};

use contexture_engine::{Conversation, EngineError};
use contexture_ir::{BranchName, Raw, RunId};
use contexture_store::{PathEnd, StateChange, StateKey, StateRequest};
use contexture_tools::LoadedToolkits;

use crate::agent::Agent;
use crate::error::RunError;
use crate::execution::{
    LiveRun, NextStep, ResumeState, RunPath, SideUsageLog, answer_texts, json_bytes, load_usage,
    next_step,
};
use crate::record::{
    RUN_STATE_VERSION, RunEntry, RunRecord, StoredRunEnd, run_key, side_usage_key, stop_key,
    value_key,
};
use crate::tasks::Abort;

/// Where the toolkits stand that were loaded on a path.
const LOADED_TOOLKITS_KEY: &str = "@toolkits";

/// Takes up an open run where it was cut off, or where it waits. `chat` is any handle on its conversation.
///
/// # Errors
/// [`RunError::ItemMismatch`] for a run that is not there or has ended; [`RunError::Engine`].
pub(crate) async fn resume(
    chat: &Conversation,
    id: RunId,
    agent: &Agent,
) -> Result<LiveRun, RunError> {
    let nothing = |found: &str| RunError::ItemMismatch {
        what: format!("run {id}"),
        expected: "an open run of this conversation".to_owned(),
        found: found.to_owned(),
    };
    let entry = RunEntry::load(chat, id).await?;
    let entry = entry.ok_or_else(|| nothing("no run of this id"))?;
    let branch = BranchName::new(&entry.branch).map_err(EngineError::from)?;
    let at = chat.for_branch(branch);
    let run = load_run(&at, id, agent, Abort::new()).await?;
    if run.is_none() && entry.status.is_open() {
        // It ended, and only its entry does not say so; or it never began.
        let ended = match StoredRunEnd::load(chat, id).await? {
            Some((_, ended)) => ended,
            None => StoredRunEnd::aborted_before_start(chat.engine().now_ms()),
        };
        ended.apply_to_entry(entry).store_entry(chat, id).await?;
    }
    run.ok_or_else(|| nothing("a run that has ended"))
}

/// A run as its path says, if its record is there.
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
    let Some(record) = state.loaded_value(&run_key(id)?) else {
        return Ok(None);
    };
    let broken = |why: String| EngineError::StoredState {
        key: format!("run {id}"),
        why,
    };
    let record: RunRecord =
        serde_json::from_slice(record).map_err(|error| broken(error.to_string()))?;
    let base = record.base.as_ref().map(|base| base.parse());
    let base = base
        .transpose()
        .map_err(|_| broken("its base is no node id".to_owned()))?;
    let path = RunPath::load(chat, id, base, record.began_ms).await?;
    let nodes = &path.nodes;
    let session = chat.layer_session(Some(record.run_scope(id))).await?;
    let books = match state.loaded_value(&side_usage_key(id)?) {
        Some(books) => serde_json::from_slice(books).map_err(|error| broken(error.to_string()))?,
        None => SideUsageLog::new(),
    };
    let began = record.began_ms;
    let mut run = LiveRun::new(
        chat.clone(),
        agent.clone(),
        id,
        record,
        session,
        abort,
        books,
    )?;
    run.usage = load_usage(chat, &path, &state).await?;
    run.step = path.step_count();
    let last = nodes
        .iter()
        .map(|node| node.created_ms)
        .max()
        .unwrap_or(began);
    let before = u64::try_from(last.saturating_sub(began)).unwrap_or(0);
    run.earlier_elapsed = Duration::from_millis(before);
    run.resumed_at = Instant::now();
    let next = match state.loaded_value(&stop_key(id)?) {
        Some(reason) => NextStep::End {
            text: serde_json::from_slice(reason).unwrap_or_default(),
        },
        None => next_step(id, nodes)?,
    };
    run.value = match state.loaded_value(&value_key(id)?) {
        Some(value) => Some(
            Raw::parse(String::from_utf8_lossy(value))
                .map_err(|error| broken(error.to_string()))?,
        ),
        None => None,
    };
    // That of the last answer comes with what comes next.
    run.answer_texts = match &next {
        NextStep::End { .. } => answer_texts(id, path.before_last_answer())?,
        NextStep::Ask { .. } | NextStep::Run(_) => answer_texts(id, nodes)?,
    };
    run.last_text = run.answer_texts.last().cloned();
    run.set_next_step(next);
    run.has_unchecked_answer = path.ends_with_answer();
    let calls: Vec<_> = match &run.next_step {
        NextStep::Run(calls) => calls.calls.iter().map(|call| call.node).collect(),
        NextStep::Ask { .. } | NextStep::End { .. } => Vec::new(),
    };
    run.resume_state = ResumeState::from_path(id, nodes, &state, calls.into_iter())?;
    let loaded =
        state.loaded_value(&StateKey::new(LOADED_TOOLKITS_KEY).map_err(EngineError::from)?);
    run.loaded = loaded
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_else(LoadedToolkits::default);
    Ok(Some(run))
}

pub(crate) fn loaded_toolkits_change(run: &LiveRun) -> Result<StateChange, RunError> {
    let key = StateKey::new(LOADED_TOOLKITS_KEY).map_err(EngineError::from)?;
    Ok(StateChange::put_entry(
        key,
        RUN_STATE_VERSION,
        json_bytes(&run.loaded),
    ))
}
