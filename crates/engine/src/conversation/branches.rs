//! Branches and checkpoints of a conversation.
//!
//! Each method makes or moves a name. Nothing is deleted, and state comes back with the node a name points to.

use contexture_ir::{BranchName, NodeId};
use contexture_store::{Branch, Checkpoint, Graph, Refs};

use crate::error::EngineError;
use crate::handle::Conversation;
use crate::refs::{
    create_branch, create_branch_at, delete_branch, delete_checkpoint, handle_for_branch,
    list_refs, load_head, load_node_graph, open_empty_branch, open_side_branch, restore_checkpoint,
    rewind_to_message, rewind_to_node, set_checkpoint, switch_branch,
};

impl Conversation {
    /// Lists all branches and checkpoints, with counts.
    pub async fn refs(&self) -> Result<Refs, EngineError> {
        list_refs(self).await
    }

    /// Loads the whole tree: nodes with their parents, and the names that point to them.
    pub async fn tree(&self) -> Result<Graph, EngineError> {
        load_node_graph(self).await
    }

    /// Rewinds to a message: opens a branch that ends with it, makes the branch active and moves this handle to
    /// it. The earlier branch stays as it is.
    ///
    /// The message is looked up on this handle's branch first, then in the whole conversation.
    ///
    /// # Errors
    /// The store's `NotFound`, or `Ambiguous` if it is not on this branch but on several others.
    pub async fn rewind(&self, message: impl AsRef<str>) -> Result<Branch, EngineError> {
        rewind_to_message(self, message.as_ref()).await
    }

    /// Rewinds as [`Self::rewind`], to a node.
    pub async fn rewind_to(&self, node: NodeId) -> Result<Branch, EngineError> {
        rewind_to_node(self, node).await
    }

    /// Opens a branch at the head, for a side question. This handle stays on its branch.
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to branch from.
    pub async fn open_side_branch(&self) -> Result<Branch, EngineError> {
        open_side_branch(self).await
    }

    /// Opens an empty branch, makes it active and moves this handle to it. The earlier branch stays as it is.
    pub async fn clear(&self) -> Result<Branch, EngineError> {
        open_empty_branch(self).await
    }

    /// Creates a branch of this name at the head, without switching to it.
    pub async fn create_branch(&self, name: &str) -> Result<Branch, EngineError> {
        create_branch(self, name).await
    }

    /// Creates a branch as [`Self::create_branch`], at a node; with `None` an empty one.
    pub async fn create_branch_at(
        &self,
        name: &str,
        base: Option<NodeId>,
    ) -> Result<Branch, EngineError> {
        create_branch_at(self, name, base).await
    }

    /// Moves this handle to another branch and makes that branch active.
    ///
    /// # Errors
    /// The store's `NotFound`.
    pub async fn switch_branch(&self, name: &str) -> Result<Branch, EngineError> {
        switch_branch(self, name).await
    }

    /// Deletes the name of a branch; its nodes stay.
    pub async fn delete_branch(&self, name: &str) -> Result<(), EngineError> {
        delete_branch(self, name).await
    }

    /// Sets a checkpoint at the head, replacing one of that name.
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to name.
    pub async fn checkpoint(&self, name: &str) -> Result<Checkpoint, EngineError> {
        set_checkpoint(self, name).await
    }

    /// Restores a checkpoint: opens a branch at its node, makes it active and moves this handle to it.
    ///
    /// # Errors
    /// The store's `NotFound`.
    pub async fn restore(&self, name: &str) -> Result<Branch, EngineError> {
        restore_checkpoint(self, name).await
    }

    /// Deletes a checkpoint; its node stays.
    pub async fn delete_checkpoint(&self, name: &str) -> Result<(), EngineError> {
        delete_checkpoint(self, name).await
    }

    /// Loads the head of this handle's branch; `None` while the branch is empty.
    pub async fn head(&self) -> Result<Option<NodeId>, EngineError> {
        load_head(self).await
    }

    /// Returns another handle with the layers of this one, on an existing branch.
    #[must_use]
    pub fn for_branch(&self, branch: BranchName) -> Self {
        handle_for_branch(self, branch)
    }
}
