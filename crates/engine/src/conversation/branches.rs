//! Branches and checkpoints of a conversation.
//!
//! Each method makes or moves a name. Nothing is deleted, and state comes back with the node a name points to.

use contexture_ir::{BranchName, NodeId};
use contexture_store::{Branch, Checkpoint, Graph, Refs};

use crate::claim::{BranchClaim, Takeover, claim_branch};
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::refs::{
    MovedCheckpoint, create_branch, create_branch_at, create_checkpoint, delete_branch,
    delete_checkpoint, handle_for_branch, list_refs, load_head, load_node_graph, move_checkpoint,
    open_empty_branch, open_side_branch, restore_checkpoint, rewind_to_message, rewind_to_node,
    switch_branch,
};

impl Conversation {
    /// Lists all branches and checkpoints, with counts.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// chat.checkpoint("greeted").await?;
    /// let refs = chat.refs().await?;
    /// assert_eq!((refs.branches.len(), refs.checkpoints.len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn refs(&self) -> Result<Refs, EngineError> {
        list_refs(self).await
    }

    /// Loads the whole tree: nodes with their parents, and the names that point to them.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Hello"), assistant_text("Hi.")]).await?;
    /// let tree = chat.tree().await?;
    /// assert_eq!(tree.nodes[1].parent, Some(saved.nodes[0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn tree(&self) -> Result<Graph, EngineError> {
        load_node_graph(self).await
    }

    /// Rewinds to a message: opens a branch that ends with it, makes the branch active and moves this handle to
    /// it. The earlier branch stays as it is.
    ///
    /// The message is looked up on this handle's branch first, then in the whole conversation. A [`Draft`](crate::Draft) stays
    /// on the branch that it was made on.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Buy it"), assistant_text("Bought.")]).await?;
    /// // Back to the question, for another answer. The first answer stays on its branch.
    /// chat.rewind(&saved.messages[0]).await?;
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
    /// assert_eq!(chat.refs().await?.branches.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's `NotFound`, or `Ambiguous` if it is not on this branch but on several others.
    pub async fn rewind(&self, message: impl AsRef<str>) -> Result<Branch, EngineError> {
        rewind_to_message(self, message.as_ref()).await
    }

    /// Rewinds as [`Self::rewind`], to a node.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Buy it"), assistant_text("Bought.")]).await?;
    /// chat.rewind_to(saved.nodes[0]).await?;
    /// assert_eq!(chat.head().await?, Some(saved.nodes[0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn rewind_to(&self, node: NodeId) -> Result<Branch, EngineError> {
        rewind_to_node(self, node).await
    }

    /// Opens a branch at the head, for a side question. This handle stays on its branch.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Plan the trip")]).await?;
    /// let branch = chat.open_side_branch().await?;
    /// let side = chat.for_branch(branch.name);
    /// side.save([user("By the way, what is the time in Bamako?")]).await?;
    /// assert_ne!(side.head().await?, chat.head().await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to branch from.
    pub async fn open_side_branch(&self) -> Result<Branch, EngineError> {
        open_side_branch(self).await
    }

    /// Opens an empty branch, makes it active and moves this handle to it. The earlier branch stays as it is.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// chat.clear().await?;
    /// assert_eq!(chat.head().await?, None);
    /// chat.switch_branch("main").await?;
    /// assert!(chat.head().await?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn clear(&self) -> Result<Branch, EngineError> {
        open_empty_branch(self).await
    }

    /// Creates a branch of this name at the head, without switching to it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let branch = chat.create_branch("experiment").await?;
    /// assert_eq!(branch.head, chat.head().await?);
    /// assert_eq!(chat.branch().as_str(), "main");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn create_branch(&self, name: &str) -> Result<Branch, EngineError> {
        create_branch(self, name).await
    }

    /// Creates a branch as [`Self::create_branch`], at a node; with `None` an empty one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Buy it"), assistant_text("Bought.")]).await?;
    /// let branch = chat.create_branch_at("second-try", Some(saved.nodes[0])).await?;
    /// assert_eq!(branch.head, Some(saved.nodes[0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn create_branch_at(
        &self,
        name: &str,
        base: Option<NodeId>,
    ) -> Result<Branch, EngineError> {
        create_branch_at(self, name, base).await
    }

    /// Moves this handle to another branch and makes that branch active. A [`Draft`](crate::Draft) stays on the branch that it
    /// was made on.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// chat.create_branch("experiment").await?;
    /// chat.switch_branch("experiment").await?;
    /// assert_eq!(chat.branch().as_str(), "experiment");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's `NotFound`.
    pub async fn switch_branch(&self, name: &str) -> Result<Branch, EngineError> {
        switch_branch(self, name).await
    }

    /// Deletes the name of a branch; its nodes stay.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// chat.create_branch("experiment").await?;
    /// chat.delete_branch("experiment").await?;
    /// assert_eq!(chat.refs().await?.branches.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn delete_branch(&self, name: &str) -> Result<(), EngineError> {
        delete_branch(self, name).await
    }

    /// Makes a checkpoint at the head: a name that stays there.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Refund the gloves")]).await?;
    /// let checkpoint = chat.checkpoint("before-refund").await?;
    /// assert_eq!(Some(checkpoint.node), chat.head().await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to name; the store's `AlreadyExists` if a checkpoint of that name
    /// points to another node.
    pub async fn checkpoint(&self, name: &str) -> Result<Checkpoint, EngineError> {
        create_checkpoint(self, name).await
    }

    /// Makes a checkpoint at the head, or moves the one of that name there, and returns where it pointed to before.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Refund the gloves")]).await?;
    /// let checkpoint = chat.checkpoint("good").await?;
    /// chat.save([assistant_text("Refunded the gloves.")]).await?;
    /// assert!(chat.checkpoint("good").await.is_err()); // it is somewhere else already
    /// let moved = chat.move_checkpoint("good").await?;
    /// assert_eq!(moved.replaced, Some(checkpoint.node));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::EmptyBranch`] if there is nothing to name.
    pub async fn move_checkpoint(&self, name: &str) -> Result<MovedCheckpoint, EngineError> {
        move_checkpoint(self, name).await
    }

    /// Restores a checkpoint: opens a branch at its node, makes it active and moves this handle to it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Refund the gloves")]).await?;
    /// let checkpoint = chat.checkpoint("before-refund").await?;
    /// chat.save([assistant_text("Refunded the shoes.")]).await?;
    /// chat.restore("before-refund").await?;
    /// assert_eq!(chat.head().await?, Some(checkpoint.node));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's `NotFound`.
    pub async fn restore(&self, name: &str) -> Result<Branch, EngineError> {
        restore_checkpoint(self, name).await
    }

    /// Claims this handle's branch for this process, until the claim is released or dropped: what is appended by the claim's
    /// own handle is refused once another process has claimed the branch. A claim of a process that has died is taken over.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, EngineError};
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut claim = chat.claim_branch().await?;
    /// assert!(matches!(chat.claim_branch().await, Err(EngineError::BranchBusy { .. })));
    /// claim.conversation().save([user("Hello")]).await?;
    /// claim.release().await?;
    /// assert!(chat.claim_branch().await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::BranchBusy`] while a process that may live holds the branch, this one included; the store's.
    pub async fn claim_branch(&self) -> Result<BranchClaim, EngineError> {
        claim_branch(self, Takeover::Dead).await
    }

    /// Claims this handle's branch over whatever process holds it, alive or not: for a branch that belongs to one which is claimed
    /// already, so that its other writer is superseded too.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let claim = chat.take_branch().await?;
    /// assert!(claim.is_current().await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::BranchBusy`] while a claim of this very process holds the branch; the store's.
    pub async fn take_branch(&self) -> Result<BranchClaim, EngineError> {
        claim_branch(self, Takeover::Any).await
    }

    /// Takes over what was set on another handle: its fragments, which need not be stored yet, and its call context.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::hint;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set([hint("Be brief.")])?;
    /// let same = chat.for_branch(chat.branch());
    /// assert!(same.fragments().await?.is_empty());
    /// same.adopt_settings(&chat);
    /// assert_eq!(same.fragments().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn adopt_settings(&self, of: &Self) {
        let (fragments, context) = {
            let other = of.lock_state();
            (other.fragments.clone(), other.call_context.clone())
        };
        let mut own = self.lock_state();
        (own.fragments, own.call_context) = (fragments, context);
    }

    /// Deletes a checkpoint; its node stays.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Refund the gloves")]).await?;
    /// chat.checkpoint("before-refund").await?;
    /// chat.delete_checkpoint("before-refund").await?;
    /// assert!(chat.restore("before-refund").await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn delete_checkpoint(&self, name: &str) -> Result<(), EngineError> {
        delete_checkpoint(self, name).await
    }

    /// Loads the head of this handle's branch; `None` while the branch is empty.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// assert_eq!(chat.head().await?, None);
    /// let saved = chat.save([user("Hello")]).await?;
    /// assert_eq!(chat.head().await?, saved.head);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn head(&self) -> Result<Option<NodeId>, EngineError> {
        load_head(self).await
    }

    /// Returns another handle with the layers of this one, on an existing branch.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let branch = chat.create_branch("experiment").await?;
    /// let experiment = chat.for_branch(branch.name);
    /// experiment.save([assistant_text("Hi.")]).await?;
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
    /// assert_eq!(experiment.messages(MessageView::User).await?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn for_branch(&self, branch: BranchName) -> Self {
        handle_for_branch(self, branch)
    }
}
