//! Calls that wait for a person's approval.
//!
//! Whether a call is open is read from the tree, not from the run's entry: a call may have got its output since the entry
//! was written.

use contexture_engine::{Engine, EngineError, parse_node_item};
use contexture_ir::{ConversationId, Item, NodeId, Owner};

use super::decision::load_decision;
use crate::agent::WaitingCall;
use crate::record::{RunEntry, RunStatus, find_node, output_node_id};

/// Returns the calls for which a listed run waits, its own first, then those of its child runs; none if it does not
/// wait.
///
/// # Errors
/// The store's.
pub async fn waiting_calls(
    engine: &Engine,
    owner: &Owner,
    entry: &RunEntry,
) -> Result<Vec<WaitingCall>, EngineError> {
    let Some(id) = &entry.conversation else {
        return Ok(Vec::new());
    };
    if entry.status != RunStatus::Waiting {
        return Ok(Vec::new());
    }
    let calls = entry
        .pending_calls
        .iter()
        .filter_map(|call| call.parse().ok());
    let calls: Vec<NodeId> = calls.collect();
    open_calls(engine, owner, id, &calls).await
}

/// Returns those of these calls that exist and have no output yet. [`TurnEnd::Waiting`](crate::TurnEnd::Waiting) names
/// them.
///
/// # Errors
/// The store's.
pub async fn open_calls(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    calls: &[NodeId],
) -> Result<Vec<WaitingCall>, EngineError> {
    let node = |id| find_node(engine, owner, conversation, id);
    let mut open = Vec::new();
    for id in calls {
        let Some(called) = node(*id).await? else {
            continue;
        };
        if let Some(run) = called.run
            && node(output_node_id(run, *id)).await?.is_none()
            && let Item::FunctionCall(call) = parse_node_item(&called)?
        {
            open.push(WaitingCall {
                node: *id,
                tool: call.name,
                arguments: call.arguments,
                decided: load_decision(engine, owner, conversation, *id).await?,
            });
        }
    }
    Ok(open)
}
