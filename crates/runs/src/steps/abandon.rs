//! Ending a run that nobody goes on with: no model is asked, and none of its calls runs.
//!
//! Not here: aborting a run that is being driven ([`RunHandle::abort`](crate::RunHandle::abort)).

use contexture_engine::{BranchClaim, Conversation, EngineError, StepAppend};
use contexture_ir::{BranchName, RunId};
use contexture_layers::RunEnd;
use contexture_store::{AppendPoint, NodeState, PathEnd, StateChange, StateRequest};

use crate::error::RunError;
use crate::execution::{RunPath, SideUsageLog, load_usage};
use crate::record::{
    RunEntry, RunRecord, RunStatus, StoredRunEnd, list_runs, run_key, side_usage_key,
};
use crate::steps::begin::{claim_branch, release};
use crate::steps::queue::clear_input;

/// Ends an open run that nobody drives, with its open child runs: as aborted, for this reason. What it did stays stored, and
/// its calls without an output never run. Returns the entry of the ended run; of a run that had ended before, the entry as it
/// is.
///
/// # Errors
/// [`RunError::Busy`] while it is being driven; [`RunError::ItemMismatch`] if the conversation has no such run; an error of
/// the store.
pub async fn abandon_run(
    chat: &Conversation,
    run: RunId,
    reason: &str,
) -> Result<RunEntry, RunError> {
    let entry = RunEntry::load(chat, run).await?;
    let entry = entry.ok_or_else(|| RunError::ItemMismatch {
        subject: format!("run {run}"),
        expected: "a run of this conversation".to_owned(),
        found: "no run of this id".to_owned(),
    })?;
    if !entry.status.is_open() {
        return Ok(entry);
    }
    let branch = BranchName::new(&entry.branch).map_err(EngineError::from)?;
    let mut claim = claim_branch(&chat.for_branch(branch)).await?;
    let ended = abandon_claimed(&claim, entry, reason).await;
    release(&mut claim).await;
    ended.map_err(RunError::or_superseded)
}

/// Ends an open run whose branch is claimed.
pub(crate) async fn abandon_claimed(
    claim: &BranchClaim,
    entry: RunEntry,
    reason: &str,
) -> Result<RunEntry, RunError> {
    let chat = claim.conversation();
    let Some(id) = entry.id() else {
        return Ok(entry);
    };
    // Children first: a crash in between leaves a run that is still open, and is abandoned again.
    for child in list_runs(chat.engine(), chat.owner(), Some(chat)).await? {
        let is_child = child.parent.as_deref() == Some(entry.run.as_str());
        if let (true, true, Some(child)) = (is_child, child.status.is_open(), child.id()) {
            Box::pin(abandon_run(chat, child, reason)).await?;
        }
    }
    let ended = match StoredRunEnd::load(chat, id).await? {
        // A process died between the end node and the entry.
        Some((_, ended)) => ended,
        None => end_on_branch(chat, id, reason).await?,
    };
    Ok(close_entry(chat, id, entry, ended).await?)
}

/// Stores the entry of a run that has ended, or never begins, and removes its input if it still waits there: also of one that began,
/// where a process died before it had removed it.
pub(crate) async fn close_entry(
    chat: &Conversation,
    id: RunId,
    entry: RunEntry,
    ended: StoredRunEnd,
) -> Result<RunEntry, EngineError> {
    let entry = ended.apply_to_entry(entry);
    entry.store_entry(chat, id).await?;
    clear_input(chat, id).await;
    Ok(entry)
}

/// Appends the end node of an open run, and tells the layers.
async fn end_on_branch(
    chat: &Conversation,
    id: RunId,
    reason: &str,
) -> Result<StoredRunEnd, RunError> {
    let state = load_state(chat, id).await?;
    let now = chat.engine().now_ms();
    let Some(record) = state.loaded_value(&run_key(id)?) else {
        // It never began: nobody has taken it up, or its process died between the entry and the first append.
        return Ok(StoredRunEnd::aborted_before_start(now, reason));
    };
    let record: RunRecord = parse_record(id, record)?;
    let base = record.base.as_deref().and_then(|base| base.parse().ok());
    let path = RunPath::load(chat, id, base, record.started_ms).await?;
    let mut usage = load_usage(chat, &path, &state).await?;
    let side_usage = state.loaded_value(&side_usage_key(id)?);
    let side_usage: SideUsageLog = side_usage
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_default();
    side_usage.values().for_each(|one| usage.roll_up(one));
    let mut session = chat.layer_session(Some(record.run_scope(id))).await?;
    let end = RunEnd::Aborted {
        reason: Some(reason.to_owned()),
    };
    session.on_complete(&end).await;
    let ended = StoredRunEnd {
        status: RunStatus::Aborted,
        ended_ms: now,
        usage: Some(usage),
        result: None,
        value: None,
        reason: Some(reason.to_owned()),
    };
    let mut node = ended.to_end_node(id)?;
    (node.run, node.step) = (Some(id), Some(path.step_count()));
    let removals = state.root.keys().cloned().map(StateChange::remove_entry);
    let append = StepAppend {
        point: AppendPoint::Tip {
            branch: chat.branch(),
        },
        items: vec![node],
        layer_items: Vec::new(),
        changes: removals.collect(),
    };
    chat.append_step(append, &mut session).await?;
    session.dispose().await;
    Ok(ended)
}

async fn load_state(chat: &Conversation, id: RunId) -> Result<NodeState, RunError> {
    let request = StateRequest {
        prefix: contexture_engine::run_prefix(id),
        ..StateRequest::all_entries(PathEnd::Branch(chat.branch()))
    };
    let store = chat.engine().store();
    let state = store.read_state(chat.owner(), chat.id(), request).await;
    Ok(state.map_err(EngineError::from)?)
}

fn parse_record(id: RunId, bytes: &[u8]) -> Result<RunRecord, EngineError> {
    serde_json::from_slice(bytes).map_err(|error| EngineError::StoredState {
        key: format!("run {id}"),
        reason: error.to_string(),
    })
}
