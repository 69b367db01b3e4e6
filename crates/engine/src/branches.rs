//! Moving about in the tree: rewind, aside, switch, checkpoint, restore, clear.
//!
//! Every one of them makes or moves a name. Nothing is deleted, and layer state comes back with the
//! node a name points to.

use std::collections::BTreeSet;

use contexture_ir::{BranchName, CheckpointName, MessageId, NodeId};
use contexture_store::{
    Activation, Branch, BranchLabel, Checkpoint, EntityKind, Error as StoreError, Graph, NewBranch,
    Node, NodeQuery, ReadRequest, RefChange, RefChanged, Refs, Span, load_graph,
};
use std::sync::Arc;

use crate::conversation::{Conversation, message_not_found};
use crate::error::EngineError;

impl Conversation {
    /// All branches and checkpoints, with counts.
    pub async fn refs(&self) -> Result<Refs, EngineError> {
        Ok(self.store().list_refs(self.owner(), self.id()).await?)
    }

    /// The whole tree: nodes with their parents, and the names that point to them.
    pub async fn tree(&self) -> Result<Graph, EngineError> {
        Ok(load_graph(self.store(), self.owner(), self.id()).await?)
    }

    /// Goes back to a message: a new branch whose last message it is, made active, and this handle on
    /// it. The branch left behind stays as it is.
    ///
    /// The message is looked for on this handle's branch first, then anywhere in the conversation.
    ///
    /// # Errors
    /// The store's `NotFound`, or `Ambiguous` if it is not on this branch but on several others.
    pub async fn rewind(&self, message: impl AsRef<str>) -> Result<Branch, EngineError> {
        let last = self.last_message_node(message.as_ref()).await?;
        self.rewind_to(last).await
    }

    /// As [`Self::rewind`], to a node.
    pub async fn rewind_to(&self, node: NodeId) -> Result<Branch, EngineError> {
        let branch = self.open_branch(Some(node), Activation::Activate).await?;
        self.set_branch(branch.name.clone());
        Ok(branch)
    }

    /// Opens a branch at the head for a question aside. This handle stays where it is.
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to branch from.
    pub async fn open_side_branch(&self) -> Result<Branch, EngineError> {
        let head = self.require_head("open a branch aside").await?;
        self.open_branch(Some(head), Activation::Keep).await
    }

    /// Starts anew on an empty branch, made active. Everything said so far stays on its branch.
    pub async fn clear(&self) -> Result<Branch, EngineError> {
        let branch = self.open_branch(None, Activation::Activate).await?;
        self.set_branch(branch.name.clone());
        Ok(branch)
    }

    /// Makes a branch of this name at the head, without switching to it.
    pub async fn create_branch(&self, name: &str) -> Result<Branch, EngineError> {
        self.create_branch_at(name, self.head().await?).await
    }

    /// As [`Self::create_branch`], at a node; `None`: an empty one.
    pub async fn create_branch_at(
        &self,
        name: &str,
        base: Option<NodeId>,
    ) -> Result<Branch, EngineError> {
        let label = BranchLabel::Named(BranchName::new(name)?);
        let new = NewBranch {
            base,
            label,
            activate: Activation::Keep,
        };
        self.expect_branch(self.change_ref(RefChange::CreateBranch(new)).await?)
    }

    /// Puts this handle on another branch and makes that the active one.
    ///
    /// # Errors
    /// The store's `NotFound`.
    pub async fn switch_branch(&self, name: &str) -> Result<Branch, EngineError> {
        let name = BranchName::new(name)?;
        let branch = self.expect_branch(self.change_ref(RefChange::Activate(name)).await?)?;
        self.set_branch(branch.name.clone());
        Ok(branch)
    }

    /// Deletes a branch's name; its nodes stay.
    pub async fn delete_branch(&self, name: &str) -> Result<(), EngineError> {
        self.change_ref(RefChange::DeleteBranch(BranchName::new(name)?))
            .await?;
        Ok(())
    }

    /// Names the head, replacing a checkpoint of that name.
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to name.
    pub async fn checkpoint(&self, name: &str) -> Result<Checkpoint, EngineError> {
        let node = self.require_head("make a checkpoint").await?;
        let name = CheckpointName::new(name)?;
        match self
            .change_ref(RefChange::SetCheckpoint {
                name: name.clone(),
                node,
            })
            .await?
        {
            RefChanged::Checkpoint(checkpoint) => Ok(checkpoint),
            _ => Err(StoreError::not_found(EntityKind::Checkpoint, name).into()),
        }
    }

    /// Goes back to a checkpoint: a new branch at its node, made active, and this handle on it.
    ///
    /// # Errors
    /// The store's `NotFound`.
    pub async fn restore(&self, name: &str) -> Result<Branch, EngineError> {
        let name = CheckpointName::new(name)?;
        let refs = self.refs().await?;
        let checkpoint = refs
            .checkpoints
            .iter()
            .find(|checkpoint| checkpoint.name == name);
        let node = checkpoint
            .ok_or_else(|| StoreError::not_found(EntityKind::Checkpoint, &name))?
            .node;
        self.rewind_to(node).await
    }

    /// Deletes a checkpoint's name.
    pub async fn delete_checkpoint(&self, name: &str) -> Result<(), EngineError> {
        self.change_ref(RefChange::DeleteCheckpoint(CheckpointName::new(name)?))
            .await?;
        Ok(())
    }

    /// The head of this handle's branch; `None` while it is empty.
    pub async fn head(&self) -> Result<Option<NodeId>, EngineError> {
        let request = ReadRequest::last_nodes(self.current_position(), 1);
        Ok(self
            .store()
            .read_path(self.owner(), self.id(), request)
            .await?
            .head)
    }

    /// The nodes of a message on this handle's branch, oldest first; empty if it is not there.
    pub(crate) async fn message_nodes_on_branch(
        &self,
        id: &MessageId,
    ) -> Result<Vec<Arc<Node>>, EngineError> {
        let query = NodeQuery::Message(id.clone());
        let nodes = match self
            .store()
            .find_nodes(self.owner(), self.id(), query)
            .await
        {
            Ok(nodes) => nodes,
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut here = Vec::new();
        for node in nodes {
            if self.is_on_branch(&node).await? {
                here.push(node);
            }
        }
        here.sort_by_key(|node| node.depth);
        Ok(here)
    }

    /// Whether a node is on this handle's branch: one read of one position.
    async fn is_on_branch(&self, node: &Node) -> Result<bool, EngineError> {
        let span = Span::Between(node.depth, node.depth);
        let request = ReadRequest {
            at: self.current_position(),
            span,
            limit: None,
        };
        let page = self
            .store()
            .read_path(self.owner(), self.id(), request)
            .await?;
        Ok(page.nodes.first().is_some_and(|found| found.id == node.id))
    }

    async fn last_message_node(&self, message: &str) -> Result<NodeId, EngineError> {
        let id = MessageId::new(message)?;
        if let Some(last) = self.message_nodes_on_branch(&id).await?.last() {
            return Ok(last.id);
        }
        let nodes = self
            .store()
            .find_nodes(self.owner(), self.id(), NodeQuery::Message(id))
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

    /// Another handle with the layers of this one, on a branch that is there.
    #[must_use]
    pub fn for_branch(&self, branch: BranchName) -> Self {
        let engine = self.engine().clone();
        let other = Self::new(engine, self.owner().clone(), self.id().clone(), branch);
        other.set_layers(self.layers());
        other
    }

    async fn require_head(&self, what: &'static str) -> Result<NodeId, EngineError> {
        let empty = || EngineError::EmptyBranch {
            what,
            branch: self.branch(),
        };
        self.head().await?.ok_or_else(empty)
    }

    async fn open_branch(
        &self,
        base: Option<NodeId>,
        activate: Activation,
    ) -> Result<Branch, EngineError> {
        let label = BranchLabel::After(self.branch());
        let new = NewBranch {
            base,
            label,
            activate,
        };
        self.expect_branch(self.change_ref(RefChange::CreateBranch(new)).await?)
    }

    async fn change_ref(&self, change: RefChange) -> Result<RefChanged, EngineError> {
        let at = self.engine().now_ms();
        Ok(self
            .store()
            .change_ref(self.owner(), self.id(), change, at)
            .await?)
    }

    fn expect_branch(&self, changed: RefChanged) -> Result<Branch, EngineError> {
        match changed {
            RefChanged::Branch(branch) => Ok(branch),
            _ => Err(StoreError::not_found(EntityKind::Branch, self.branch()).into()),
        }
    }
}
