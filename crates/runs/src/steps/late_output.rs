//! The output of a tool that ran while another process took the run up.
//!
//! The tool did its work, so its output is kept where that is possible: it is stored without the claim if the call is still
//! open and was not started again, which the start marker shows. Otherwise the caller gets it back.
//!
//! Not here: outputs of the driver that has the claim (`store_output`).

use contexture_engine::EngineError;
use contexture_ir::{FunctionCallOutput, Item};
use contexture_store::{
    AppendPoint, AppendRequest, Error as StoreError, StateChange, StateExpectation, StatePatch,
};

use crate::error::RunError;
use crate::execution::{LiveRun, UnansweredCall, UnansweredCalls};
use crate::record::started_key;
use crate::steps::store_output::batch_of_output;

/// Stores the output, if its call is still open. `marker` is the start marker that was stored before the tool ran; `changes` are
/// those that go with the output. Returns what the caller is told.
pub(crate) async fn store_late_output(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    output: FunctionCallOutput,
    (marker, changes): (Option<&[u8]>, Vec<StateChange>),
) -> RunError {
    let kept = match try_store(run, of, call, &output, (marker, changes)).await {
        Ok(stored) => stored,
        Err(error) => {
            tracing::warn!(run = %run.id, %error, "a late output is not stored");
            false
        }
    };
    RunError::Superseded {
        output: (!kept).then(|| Box::new(output)),
    }
}

async fn try_store(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    output: &FunctionCallOutput,
    (marker, mut changes): (Option<&[u8]>, Vec<StateChange>),
) -> Result<bool, RunError> {
    if let Some(marker) = marker {
        let key = started_key(run.id, call.node)?;
        let state = run.load_run_state().await?;
        let (Some(entry), Some(stored)) = (state.root.get(&key), state.loaded_value(&key)) else {
            return Ok(false);
        };
        if **stored != *marker {
            // Started again, for a later decision.
            return Ok(false);
        }
        changes.retain(|change| change.key != key);
        // The condition makes it atomic: if the call is answered or started again meanwhile, nothing is stored.
        let stands = StateExpectation::Hash(entry.hash);
        changes.push(StateChange::remove_entry(key).with_condition(stands));
    }
    let item = Item::FunctionCallOutput(output.clone());
    // As any other output: a guard may keep it from the model.
    let items = run.session.on_append(vec![item]).await?;
    let batch = batch_of_output(run, of, call, items);
    let at = AppendPoint::Tip {
        branch: run.chat.branch(),
    };
    let mut request = AppendRequest::new(at, batch.nodes, run.chat.engine().now_ms());
    request.patch = StatePatch { changes, from: 0 };
    let store = run.chat.engine().store();
    let stored = store.append_items(run.chat.owner(), run.chat.id(), request);
    match stored.await {
        Ok(_) => Ok(true),
        // The call has another output: the ids of outputs derive from their calls.
        Err(StoreError::IdConflict { .. } | StoreError::StateConflict { .. }) => Ok(false),
        Err(error) => Err(EngineError::from(error).into()),
    }
}
