//! Calls of a run that wait for a person's word.

use std::collections::BTreeSet;

use contexture_engine::{Engine, EngineError, item};
use contexture_ir::{BranchName, ConversationId, Item, NodeId, Owner, RunId};
use contexture_store::{At, Error as StoreError, NodeKind, ReadRequest};

use super::entry::{RunEntry, RunStatus};

/// A call without an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// Its node.
    pub node: NodeId,
    /// The tool.
    pub tool: String,
    /// What it is called with, as the model wrote it: JSON, as a rule.
    pub arguments: String,
}

/// The calls for which a listed run waits, oldest first; none if it does not wait, or its branch is gone.
///
/// # Errors
/// The store's.
pub async fn waiting_calls(
    engine: &Engine,
    owner: &Owner,
    entry: &RunEntry,
) -> Result<Vec<WaitingCall>, EngineError> {
    let (run, branch) = (entry.id(), entry.branch.parse().ok());
    match (run, branch, &entry.conversation) {
        (Some(run), Some(branch), Some(id)) if entry.status == RunStatus::Waiting => {
            open_calls(engine, owner, id, branch, run).await
        }
        _ => Ok(Vec::new()),
    }
}

/// The calls of a run that have no output yet, oldest first; none if its branch is gone.
///
/// # Errors
/// The store's.
pub async fn open_calls(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    branch: BranchName,
    run: RunId,
) -> Result<Vec<WaitingCall>, EngineError> {
    let request = ReadRequest::whole(At::Branch(branch));
    let page = match engine.store().read(owner, conversation, request).await {
        Ok(page) => page,
        Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let answered: BTreeSet<NodeId> = page.nodes.iter().filter_map(|node| node.answers).collect();
    let open = page.nodes.iter().filter(|node| {
        node.run == Some(run) && node.kind == NodeKind::FunctionCall && !answered.contains(&node.id)
    });
    let mut calls = Vec::new();
    for node in open {
        if let Item::FunctionCall(call) = item(node)? {
            calls.push(WaitingCall {
                node: node.id,
                tool: call.name,
                arguments: call.arguments,
            });
        }
    }
    Ok(calls)
}
