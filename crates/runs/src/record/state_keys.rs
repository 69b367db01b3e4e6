//! Keys of a run's state on the tree and outside it, and ids derived from what they identify.

use std::sync::Arc;

use contexture_engine::{Engine, EngineError, run_prefix};
use contexture_ir::{BranchName, ConversationId, NodeId, Owner, RunId};
use contexture_store::{Error as StoreError, Node, NodeQuery, StateKey};

/// Key of an open run's record: present from its first append to its last.
pub(crate) fn run_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@run")
}

/// Prefix of the state of all runs.
pub(crate) const RUNS_PREFIX: &str = "run/";

/// Returns the open run whose record has this key, if it is the key of a record.
pub(crate) fn open_run_of_key(key: &StateKey) -> Option<RunId> {
    let run = key.as_str().strip_prefix(RUNS_PREFIX)?;
    run.strip_suffix("/@run")?.parse().ok()
}

/// Key of the program's own state in a run.
pub(crate) fn state_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@state")
}

/// Key of the start marker of a call's tool.
pub(crate) fn started_key(run: RunId, call: NodeId) -> Result<StateKey, EngineError> {
    run_state_key(run, &format!("@tool/{call}"))
}

/// Key of the reason for which layers stopped the run.
pub(crate) fn stop_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@stop")
}

/// Key of the value that ends the run.
pub(crate) fn value_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@value")
}

/// Key of the run's side usage.
pub(crate) fn side_usage_key(run: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, "@beside")
}

/// Key of a child's usage.
pub(crate) fn child_key(run: RunId, child: RunId) -> Result<StateKey, EngineError> {
    run_state_key(run, &format!("@child/{child}"))
}

/// Key of the result of a durable step.
pub(crate) fn step_key(run: RunId, name: &str, time: u32) -> Result<StateKey, EngineError> {
    // Hashed, because a name may have any length and any characters.
    let name = NodeId::derive("step", &[name.as_bytes()]);
    run_state_key(run, &format!("@step/{name}/{time}"))
}

fn run_state_key(run: RunId, of: &str) -> Result<StateKey, EngineError> {
    Ok(StateKey::new(format!("{}{of}", run_prefix(run)))?)
}

/// Key of the run's entry outside the tree, in the conversation's scope.
pub(crate) fn entry_key(run: RunId) -> String {
    format!("{RUN_ENTRY_PREFIX}{run}")
}

/// Key of the request to cancel a run, in the conversation's scope.
pub(crate) fn cancel_key(run: RunId) -> String {
    // Not below the entries of runs: lists would read it.
    format!("cancelled-runs/{run}")
}

/// Key of the input of a queued run, in the conversation's scope.
pub(crate) fn queued_input_key(run: RunId) -> String {
    format!("queued-runs/{run}")
}

/// Prefix of the keys of run entries.
pub(crate) const RUN_ENTRY_PREFIX: &str = "runs/";

/// Prefix of the keys of a branch's inbox.
pub(crate) fn inbox_prefix(branch: &BranchName) -> String {
    // Hashed to a fixed length, so that no prefix is a prefix of another.
    let branch = NodeId::derive("inbox", &[branch.as_str().as_bytes()]);
    format!("inbox/{branch}/")
}

/// Returns the node id of an inbox item, whichever run appends it.
pub(crate) fn inbox_node_id(key: &str) -> NodeId {
    NodeId::derive("inbox item", &[key.as_bytes()])
}

/// Returns the id of a run's node, derived from its purpose.
pub(crate) fn node_id(run: RunId, of: &str, which: &[u8]) -> NodeId {
    NodeId::derive("run", &[run.as_bytes(), of.as_bytes(), which])
}

/// Returns the id of the output of a call.
pub(crate) fn output_node_id(run: RunId, call: NodeId) -> NodeId {
    node_id(run, "output", call.as_bytes())
}

/// Returns the id of the message that says what is wrong with the final answer of a step.
pub(crate) fn rejection_node_id(run: RunId, step: u32) -> NodeId {
    node_id(run, "rejection", &step.to_le_bytes())
}

/// Returns the id of the decision about a call, made after the decision `before`. A second decision about the same attempt has
/// the same id, so it is refused.
pub(crate) fn approval_node_id(run: RunId, call: NodeId, before: Option<&str>) -> NodeId {
    let which = format!("{call}/{}", before.unwrap_or_default());
    node_id(run, "approval", which.as_bytes())
}

/// Returns the ids of items that are stored together: the first has the given id, the others derive from it.
pub(crate) fn nth_node_id(first: NodeId, index: usize) -> NodeId {
    match index {
        0 => first,
        _ => NodeId::derive("nth", &[first.as_bytes(), &index.to_le_bytes()]),
    }
}

/// Returns the id of the run's end node.
pub(crate) fn end_node_id(run: RunId) -> NodeId {
    node_id(run, "end", &[])
}

/// Returns the id of the child run for a call or a name.
pub(crate) fn child_id(run: RunId, of: &[u8]) -> RunId {
    RunId::derive("child run", &[run.as_bytes(), of])
}

/// Returns the branch a child run works on.
pub(crate) fn child_branch(child: RunId) -> Result<BranchName, EngineError> {
    Ok(BranchName::new(format!("run-{child}"))?)
}

/// Finds the node of this id, if there is one.
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
