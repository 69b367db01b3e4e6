//! Names of what a run keeps on the tree and beside it, and ids that follow from what they are of.

use std::sync::Arc;

use contexture_engine::{Engine, EngineError, run_prefix};
use contexture_ir::{BranchName, ConversationId, NodeId, Owner, RunId};
use contexture_store::{Error as StoreError, Node, NodeQuery, StateKey};

/// The entry of a running run: there from its first append to its last.
pub(crate) fn run_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@run")
}

/// What the program keeps with a run.
pub(crate) fn state_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@state")
}

/// That the tool of a call was begun.
pub(crate) fn started_key(run: RunId, call: NodeId) -> Result<StateKey, EngineError> {
    run_state_key(run, &format!("@tool/{call}"))
}

/// That layers stopped the run, and why.
pub(crate) fn stop_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@stop")
}

/// The value the run is ended with.
pub(crate) fn value_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@value")
}

/// What was spent on the side.
pub(crate) fn side_usage_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@beside")
}

/// What a child spent.
pub(crate) fn child_key(run: RunId, child: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, &format!("@child/{child}"))
}

/// What a step gave.
pub(crate) fn step_key(run: RunId, name: &str, time: u32) -> Result<StateKey, EngineError> {
    // A name of any length and any characters.
    let name = NodeId::derive("step", &[name.as_bytes()]);
    run_state_key(run, &format!("@step/{name}/{time}"))
}

fn run_state_key(run: RunId, of: &str) -> Result<StateKey, EngineError> {
    Ok(StateKey::new(format!("{}{of}", run_prefix(run)))?)
}

/// The entry beside the tree, in the conversation's scope.
pub(crate) fn entry_key(run: RunId) -> String {
    format!("{RUN_ENTRY_PREFIX}{run}")
}

/// What the keys of runs' entries begin with.
pub(crate) const RUN_ENTRY_PREFIX: &str = "runs/";

/// What the keys of a branch's inbox begin with.
pub(crate) fn inbox_prefix(branch: &BranchName) -> String {
    // Of one length, so that none begins with another's.
    let branch = NodeId::derive("inbox", &[branch.as_str().as_bytes()]);
    format!("inbox/{branch}/")
}

/// The id of what was in an inbox under this key, whichever run takes it in.
pub(crate) fn inbox_node_id(key: &str) -> NodeId {
    NodeId::derive("inbox item", &[key.as_bytes()])
}

/// The id of a node of a run, by what it is of.
pub(crate) fn node_id(run: RunId, of: &str, which: &[u8]) -> NodeId {
    NodeId::derive("run", &[run.as_bytes(), of.as_bytes(), which])
}

/// The id of the output of a call of a run.
pub(crate) fn output_node_id(run: RunId, call: NodeId) -> NodeId {
    node_id(run, "output", call.as_bytes())
}

/// The ids of items that are stored as one: the first has that of what they are of.
pub(crate) fn nth_node_id(first: NodeId, index: usize) -> NodeId {
    match index {
        0 => first,
        _ => NodeId::derive("nth", &[first.as_bytes(), &index.to_le_bytes()]),
    }
}

/// The node by which a run ended.
pub(crate) fn end_node_id(run: RunId) -> NodeId {
    node_id(run, "end", &[])
}

/// The id of the child that answers a call.
pub(crate) fn child_id(run: RunId, of: &[u8]) -> RunId {
    RunId::derive("child run", &[run.as_bytes(), of])
}

/// The branch a child works on.
pub(crate) fn child_branch(child: RunId) -> Result<BranchName, EngineError> {
    Ok(BranchName::new(format!("run-{child}"))?)
}

/// The node of this id, if there is one.
pub(crate) async fn find_node(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    id: NodeId,
) -> Result<Option<Arc<Node>>, EngineError> {
    let found = engine
        .store()
        .find_nodes(owner, conversation, NodeQuery::Id(id));
    match found.await {
        Ok(found) => Ok(found.into_iter().next()),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
