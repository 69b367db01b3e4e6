//! The end of a run: layers are told, its entries go off the tree, and lists say how it ended.

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use contexture_store::{NewItem, StateChange, StateKey};

use crate::agent::RunEventKind;
use crate::error::RunError;
use crate::execution::LiveRun;
use crate::record::{RunEntry, RunStatus, StoredRunEnd, side_usage_key};
use crate::steps::sub_agent::run_end;

/// Ends the run. Done twice, it does nothing new.
pub(crate) async fn finish_run(
    run: &mut LiveRun,
    status: RunStatus,
    error: Option<&RunError>,
) -> Result<(), RunError> {
    run.session.on_complete(&run_end(error)).await;
    run.session.dispose().await;
    let state = run.load_run_state().await?;
    let mut gone: BTreeSet<StateKey> = state.root.keys().cloned().collect();
    // What layers ask at the end is in the figures.
    gone.insert(side_usage_key(run.id)?);
    let gone = gone.into_iter().map(StateChange::remove_entry).collect();
    let ended = StoredRunEnd {
        status,
        ended_ms: run.chat.engine().now_ms(),
        spent: Some(run.usage()),
        result: run.last_text.clone(),
        value: run.value.clone(),
        why: error.map(ToString::to_string),
    };
    let why = ended.why.clone();
    let step = run.run_step();
    let node = NewItem {
        run: Some(step.run),
        step: Some(step.step),
        ..ended.to_end_node(run.id)?
    };
    run.append_node(node, gone).await?;
    let entry = RunEntry::new(run.id, &run.record, &run.chat.branch());
    ended
        .apply_to_entry(entry)
        .store_entry(&run.chat, run.id)
        .await?;
    if run.record.depth == 0 {
        run.channels.close();
    }
    let spent = run.usage();
    run.notify_observer(|| RunEventKind::Ended { status, why, spent });
    Ok(())
}

/// Stores that the run waits for these calls, for lists.
pub(crate) async fn store_waiting(run: &LiveRun, calls: &[NodeId]) -> Result<(), RunError> {
    let entry = RunEntry {
        status: RunStatus::Waiting,
        spent: Some(run.usage()),
        waiting: calls.iter().map(ToString::to_string).collect(),
        ..RunEntry::new(run.id, &run.record, &run.chat.branch())
    };
    entry.store_entry(&run.chat, run.id).await?;
    Ok(())
}
