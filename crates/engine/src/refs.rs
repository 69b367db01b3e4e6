//! Branches and checkpoints: rewind, fork, switch, name, restore.
//!
//! Each operation makes or moves a name. Nothing is deleted, and state comes back with the node a name points to.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_ir::{BranchName, CheckpointName, MessageId, NodeId};
use contexture_store::{
    Activation, Branch, BranchLabel, Checkpoint, EntityKind, Error as StoreError, Graph, NewBranch,
    Node, NodeQuery, PathEnd, ReadRequest, RefChange, RefChanged, Refs, Span, load_graph,
};

use crate::error::EngineError;
use crate::handle::Conversation;

/// Lists all branches and checkpoints, with counts.
pub(crate) async fn list_refs(chat: &Conversation) -> Result<Refs, EngineError> {
    Ok(chat.store().list_refs(chat.owner(), chat.id()).await?)
}

/// Loads the whole tree: nodes with their parents, and the names that point to them.
pub(crate) async fn load_node_graph(chat: &Conversation) -> Result<Graph, EngineError> {
    Ok(load_graph(chat.store(), chat.owner(), chat.id()).await?)
}

/// Rewinds to a message: opens a branch that ends with it, makes the branch active and moves this handle to
/// it. The earlier branch stays as it is.
pub(crate) async fn rewind_to_message(
    chat: &Conversation,
    message: &str,
) -> Result<Branch, EngineError> {
    let last = last_message_node(chat, message).await?;
    rewind_to_node(chat, last).await
}

/// Moves the branch back to a node.
pub(crate) async fn rewind_to_node(
    chat: &Conversation,
    node: NodeId,
) -> Result<Branch, EngineError> {
    let branch = open_branch(chat, Some(node), Activation::Activate).await?;
    chat.set_branch(branch.name.clone());
    Ok(branch)
}

/// Opens a branch at the head, for a side question. This handle stays on its branch.
pub(crate) async fn open_side_branch(chat: &Conversation) -> Result<Branch, EngineError> {
    let head = require_head(chat, "open a branch aside").await?;
    open_branch(chat, Some(head), Activation::Keep).await
}

/// Opens an empty branch, makes it active and moves this handle to it. The earlier branch stays as it is.
pub(crate) async fn open_empty_branch(chat: &Conversation) -> Result<Branch, EngineError> {
    let branch = open_branch(chat, None, Activation::Activate).await?;
    chat.set_branch(branch.name.clone());
    Ok(branch)
}

/// Creates a branch of this name at the head, without switching to it.
pub(crate) async fn create_branch(chat: &Conversation, name: &str) -> Result<Branch, EngineError> {
    create_branch_at(chat, name, load_head(chat).await?).await
}

/// Creates a branch at a node; with `None` an empty one.
pub(crate) async fn create_branch_at(
    chat: &Conversation,
    name: &str,
    base: Option<NodeId>,
) -> Result<Branch, EngineError> {
    let label = BranchLabel::Named(BranchName::new(name)?);
    let new = NewBranch {
        base,
        label,
        activate: Activation::Keep,
    };
    expect_branch(chat, change_ref(chat, RefChange::CreateBranch(new)).await?)
}

/// Moves this handle to another branch and makes that branch active.
pub(crate) async fn switch_branch(chat: &Conversation, name: &str) -> Result<Branch, EngineError> {
    let name = BranchName::new(name)?;
    let branch = expect_branch(chat, change_ref(chat, RefChange::Activate(name)).await?)?;
    chat.set_branch(branch.name.clone());
    Ok(branch)
}

/// Deletes the name of a branch; its nodes stay.
pub(crate) async fn delete_branch(chat: &Conversation, name: &str) -> Result<(), EngineError> {
    change_ref(chat, RefChange::DeleteBranch(BranchName::new(name)?)).await?;
    Ok(())
}

/// A checkpoint that was set, and what it pointed to before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedCheckpoint {
    /// The checkpoint as it is now.
    pub checkpoint: Checkpoint,
    /// Node that the name pointed to before; `None` if there was no such checkpoint.
    pub replaced: Option<NodeId>,
}

/// Makes a checkpoint at the head. One of that name at another node is refused.
pub(crate) async fn create_checkpoint(
    chat: &Conversation,
    name: &str,
) -> Result<Checkpoint, EngineError> {
    let node = require_head(chat, "make a checkpoint").await?;
    let name = CheckpointName::new(name)?;
    let set = set_checkpoint(chat, RefChange::CreateCheckpoint { name, node }).await?;
    Ok(set.checkpoint)
}

/// Makes a checkpoint at the head, or moves the one of that name there.
pub(crate) async fn move_checkpoint(
    chat: &Conversation,
    name: &str,
) -> Result<MovedCheckpoint, EngineError> {
    let node = require_head(chat, "make a checkpoint").await?;
    let name = CheckpointName::new(name)?;
    set_checkpoint(chat, RefChange::SetCheckpoint { name, node }).await
}

async fn set_checkpoint(
    chat: &Conversation,
    change: RefChange,
) -> Result<MovedCheckpoint, EngineError> {
    match change_ref(chat, change).await? {
        RefChanged::Checkpoint {
            checkpoint,
            replaced,
        } => Ok(MovedCheckpoint {
            checkpoint,
            replaced,
        }),
        _ => Err(StoreError::not_found(EntityKind::Checkpoint, "").into()),
    }
}

/// Restores a checkpoint: opens a branch at its node, makes it active and moves this handle to it.
pub(crate) async fn restore_checkpoint(
    chat: &Conversation,
    name: &str,
) -> Result<Branch, EngineError> {
    let name = CheckpointName::new(name)?;
    let refs = list_refs(chat).await?;
    // Read and then used: a checkpoint that is moved in between counts as it was when it was read.
    let checkpoint = refs
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.name == name);
    let node = checkpoint
        .ok_or_else(|| StoreError::not_found(EntityKind::Checkpoint, &name))?
        .node;
    rewind_to_node(chat, node).await
}

/// Deletes a checkpoint; its node stays.
pub(crate) async fn delete_checkpoint(chat: &Conversation, name: &str) -> Result<(), EngineError> {
    change_ref(
        chat,
        RefChange::DeleteCheckpoint(CheckpointName::new(name)?),
    )
    .await?;
    Ok(())
}

/// Loads the head of this handle's branch; `None` while the branch is empty.
pub(crate) async fn load_head(chat: &Conversation) -> Result<Option<NodeId>, EngineError> {
    load_head_of(chat, chat.branch()).await
}

/// Loads the head of a branch; `None` while the branch is empty.
pub(crate) async fn load_head_of(
    chat: &Conversation,
    branch: BranchName,
) -> Result<Option<NodeId>, EngineError> {
    let request = ReadRequest::last_nodes(PathEnd::Branch(branch), 1);
    Ok(chat
        .store()
        .read_path(chat.owner(), chat.id(), request)
        .await?
        .head)
}

/// The nodes of a message on the path to `at`, oldest first; empty if it is not there.
pub(crate) async fn message_nodes_on_path(
    chat: &Conversation,
    at: &PathEnd,
    id: &MessageId,
) -> Result<Vec<Arc<Node>>, EngineError> {
    let query = NodeQuery::Message(id.clone());
    let nodes = match chat
        .store()
        .find_nodes(chat.owner(), chat.id(), query)
        .await
    {
        Ok(nodes) => nodes,
        // Unknown anywhere is no error here: a draft may carry an id of the application.
        Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut here = Vec::new();
    for node in nodes {
        if is_on_path(chat, at, &node).await? {
            here.push(node);
        }
    }
    here.sort_by_key(|node| node.depth);
    Ok(here)
}

/// Whether a node is on the path to `at`: one read of one position.
async fn is_on_path(chat: &Conversation, at: &PathEnd, node: &Node) -> Result<bool, EngineError> {
    let span = Span::Between(node.depth, node.depth);
    let request = ReadRequest {
        at: at.clone(),
        span,
        limit: None,
    };
    let page = chat
        .store()
        .read_path(chat.owner(), chat.id(), request)
        .await?;
    Ok(page.nodes.first().is_some_and(|found| found.id == node.id))
}

async fn last_message_node(chat: &Conversation, message: &str) -> Result<NodeId, EngineError> {
    let id = MessageId::new(message)?;
    // This branch first: after an edit the same message may stand on several branches.
    let here = chat.current_position();
    if let Some(last) = message_nodes_on_path(chat, &here, &id).await?.last() {
        return Ok(last.id);
    }
    let nodes = chat
        .store()
        .find_nodes(chat.owner(), chat.id(), NodeQuery::Message(id))
        .await?;
    // Elsewhere the message may be continued differently on several branches: it must end in
    // one place.
    let parents: BTreeSet<NodeId> = nodes.iter().filter_map(|node| node.parent).collect();
    let ends: Vec<&Arc<Node>> = nodes
        .iter()
        .filter(|node| !parents.contains(&node.id))
        .collect();
    match ends.as_slice() {
        [] => Err(message_not_found(message)),
        [end] => Ok(end.id),
        several => Err(StoreError::Ambiguous {
            what: EntityKind::Message,
            name: message.to_owned(),
            candidates: several.iter().map(|node| node.id.to_string()).collect(),
        }
        .into()),
    }
}

/// Returns another handle with the layers and the renderer of this one, on an existing branch.
pub(crate) fn handle_for_branch(chat: &Conversation, branch: BranchName) -> Conversation {
    let engine = chat.engine().clone();
    let other = Conversation::new(engine, chat.owner().clone(), chat.id().clone(), branch);
    other.set_layers(chat.layers());
    other.set_renderer(chat.renderer());
    other
}

async fn require_head(chat: &Conversation, what: &'static str) -> Result<NodeId, EngineError> {
    let empty = || EngineError::EmptyBranch {
        operation: what,
        branch: chat.branch(),
    };
    load_head(chat).await?.ok_or_else(empty)
}

async fn open_branch(
    chat: &Conversation,
    base: Option<NodeId>,
    activate: Activation,
) -> Result<Branch, EngineError> {
    let label = BranchLabel::After(chat.branch());
    let new = NewBranch {
        base,
        label,
        activate,
    };
    expect_branch(chat, change_ref(chat, RefChange::CreateBranch(new)).await?)
}

pub(crate) async fn change_ref(
    chat: &Conversation,
    change: RefChange,
) -> Result<RefChanged, EngineError> {
    let at = chat.engine().now_ms();
    Ok(chat
        .store()
        .change_ref(chat.owner(), chat.id(), change, at)
        .await?)
}

fn expect_branch(chat: &Conversation, changed: RefChanged) -> Result<Branch, EngineError> {
    match changed {
        RefChanged::Branch(branch) => Ok(branch),
        _ => Err(StoreError::not_found(EntityKind::Branch, chat.branch()).into()),
    }
}

/// `NotFound` for a message.
pub(crate) fn message_not_found(id: &str) -> EngineError {
    StoreError::not_found(contexture_store::EntityKind::Message, id).into()
}
