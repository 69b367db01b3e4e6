//! The end of a run: layers are notified, its state is removed from the tree, and its entry says how it ended.

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use contexture_store::{NewItem, StateChange, StateKey};

use crate::agent::RunEventKind;
use crate::error::RunError;
use crate::execution::LiveRun;
use crate::record::{RunEntry, RunStatus, StoredRunEnd, side_usage_key};
use crate::steps::resume::count_late_answers;
use crate::steps::sub_agent::run_end;

/// Ends the run: layers are told and its end is stored, then they are disposed of and its branch is released. Call it once: a
/// second call runs hooks again, and its end node conflicts with the stored one.
pub(crate) async fn finish_run(
    run: &mut LiveRun,
    status: RunStatus,
    error: Option<&RunError>,
) -> Result<(), RunError> {
    if run.was_resumed {
        count_late_answers(run).await?;
    }
    // Hooks first: their state changes are stored with the end node below, in one append.
    run.session.on_complete(&run_end(error)).await;
    let removals = run_state_removals(run).await?;
    let ended = StoredRunEnd {
        status,
        ended_ms: run.chat.engine().now_ms(),
        usage: Some(run.usage()),
        result: run.last_text.clone(),
        value: run.value.clone(),
        reason: error.map(ToString::to_string),
    };
    let reason = ended.reason.clone();
    append_end_node(run, &ended, removals).await?;
    // The entry last, because the end node is authoritative. A crash in between leaves an entry that says "running",
    // which `resume` corrects.
    let entry = RunEntry::new(run.id, &run.record, &run.chat.branch());
    run.end = Some(ended.clone());
    ended
        .apply_to_entry(entry)
        .store_entry(&run.chat, run.id)
        .await?;
    // Last: nothing is asked of a layer behind it.
    run.session.dispose().await;
    run.release_claim().await;
    // Channels belong to the whole tree of runs, so only its root closes them.
    if run.record.depth == 0 {
        run.channels.close();
    }
    let usage = run.usage();
    run.notify_observer(|| RunEventKind::Ended {
        status,
        reason,
        usage,
    });
    Ok(())
}

/// Returns the changes that remove all state of the run. They are stored with the end node, so the next run on the path
/// inherits none of it.
async fn run_state_removals(run: &LiveRun) -> Result<Vec<StateChange>, RunError> {
    let state = run.load_run_state().await?;
    let mut removals: BTreeSet<StateKey> = state.root.keys().cloned().collect();
    // Layers may ask models in the hooks at the run's end, which adds side usage that is not on the tree yet.
    removals.insert(side_usage_key(run.id)?);
    let removals = removals.into_iter().map(StateChange::remove_entry);
    Ok(removals.collect())
}

async fn append_end_node(
    run: &mut LiveRun,
    ended: &StoredRunEnd,
    removals: Vec<StateChange>,
) -> Result<(), RunError> {
    let step = run.run_step();
    let node = NewItem {
        // The end node belongs to the run's last step, so that it is counted among the run's own nodes.
        run: Some(step.run),
        step: Some(step.step),
        ..ended.to_end_node(run.id)?
    };
    run.append_node(node, removals).await?;
    Ok(())
}

/// Stores in the run's entry that it waits for these calls. Its record stays, because the run is open.
pub(crate) async fn store_waiting(run: &LiveRun, calls: &[NodeId]) -> Result<(), RunError> {
    let entry = RunEntry {
        status: RunStatus::Waiting,
        // In the entry, so that lists show the cost of a waiting run without reading its path.
        usage: Some(run.usage()),
        pending_calls: calls.iter().map(ToString::to_string).collect(),
        ..RunEntry::new(run.id, &run.record, &run.chat.branch())
    };
    entry.store_entry(&run.chat, run.id).await?;
    Ok(())
}
