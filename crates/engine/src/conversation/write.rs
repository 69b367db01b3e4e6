//! Writing to a conversation: fragments, drafts, metadata, pins, copies of outputs.

use contexture_compile::CallContext;
use contexture_ir::{Fragment, Item, NodeId, Raw, Usage};
use contexture_store::{Appended, NewItem};

use crate::append::{RunStep, new_item, pin_node, reconcile_copies, unpin_node};
use crate::draft::{Committed, Draft, new_draft, save_messages};
use crate::error::EngineError;
use crate::handle::{
    Conversation, CopyReport, add_fragments, remove_fragments, set_fragments, set_metadata,
    set_title,
};
use crate::hooks::{LayerSession, StepAppend, append_step};
use crate::record::track_usage;

impl Conversation {
    /// Builds an item as it is stored: secrets redacted, its meaning hashed.
    #[must_use]
    pub fn new_item(&self, id: NodeId, item: &Item, step: Option<RunStep>) -> NewItem {
        new_item(self, id, item, step)
    }

    /// Appends items of a run's step together with the changes of its layers.
    ///
    /// # Errors
    /// One that [is about a stale state](EngineError::is_stale_state) where somebody else changed a layer's state since
    /// the session was read: read it [again](Self::refresh_session) and repeat what layers were asked; [`EngineError::Layers`] for a layer that must not fail; or the store's.
    pub async fn append_step(
        &self,
        step: StepAppend,
        session: &mut LayerSession,
    ) -> Result<Appended, EngineError> {
        append_step(self, step, session).await
    }

    /// Replaces the handle's fragments, which the model reads before the history.
    ///
    /// They belong to the handle. Each append also records the list on the path, so that a rewind brings back the
    /// list of that time. Fragments with `persist: false` are not recorded.
    ///
    /// # Errors
    /// [`EngineError::NotData`] for a fragment that carries a message.
    pub fn set(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        set_fragments(self, fragments)
    }

    /// Adds fragments after those of the handle.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn add(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        add_fragments(self, fragments)
    }

    /// Removes the handle's fragments with this id and returns their number.
    pub fn unset(&self, id: &str) -> usize {
        remove_fragments(self, id)
    }

    /// Changes the call context: context, state, guardrails and the line about the window, which every compile of
    /// this handle adds to the conversation. It is not recorded on the path, but stored with each answer that was
    /// compiled with it.
    ///
    /// ```
    /// use contexture_compile::{Contribution, Placement};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use contexture_engine::Engine;
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// let state = Contribution::state(&["ship it"], Placement::Tail)?;
    /// chat.update_call_context(|context| {
    ///     context.set_context("open_file", "src/main.rs");
    ///     context.set_state(Some(state));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_call_context<T>(&self, change: impl FnOnce(&mut CallContext) -> T) -> T {
        // On a copy, so that a panic changes nothing and nothing waits for `change`.
        let mut context = self.call_context();
        let out = change(&mut context);
        self.lock_state().call_context = context;
        out
    }

    /// Changes the title; `None` removes it.
    pub async fn set_title(&self, title: Option<&str>) -> Result<(), EngineError> {
        set_title(self, title).await
    }

    /// Sets or, with `None`, removes one metadata entry; others stay.
    pub async fn set_metadata(&self, key: &str, value: Option<Raw>) -> Result<(), EngineError> {
        set_metadata(self, key, value).await
    }

    /// Puts the copies that are missing, of all branches' outputs: what was stored while the place failed, or before
    /// [`Engine::with_offload`](crate::Engine::with_offload). Without that it does nothing.
    ///
    /// Reads all of the conversation's paths.
    ///
    /// # Errors
    /// [`EngineError::Offload`] if what is there cannot be listed, or the store's.
    pub async fn reconcile_copies(&self) -> Result<CopyReport, EngineError> {
        reconcile_copies(self).await
    }

    /// Returns an empty draft.
    #[must_use]
    pub fn draft(&self) -> Draft {
        new_draft(self)
    }

    /// Stores messages: pushes them to a draft and commits it.
    ///
    /// # Errors
    /// As [`Draft::commit`].
    pub async fn save(
        &self,
        messages: impl IntoIterator<Item = Fragment>,
    ) -> Result<Committed, EngineError> {
        save_messages(self, messages).await
    }

    /// Pins a node on this branch: its round is never cleared, previewed or cut. Pinning a pinned node does
    /// nothing.
    ///
    /// Pinned content is required: if it does not fit, a compile is refused.
    ///
    /// # Errors
    /// `NotFound` for an unknown node; `StateConflict` if the pins changed concurrently; or the store's.
    pub async fn pin(&self, node: NodeId) -> Result<(), EngineError> {
        pin_node(self, node).await
    }

    /// Removes a pin and returns whether there was one.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn unpin(&self, node: NodeId) -> Result<bool, EngineError> {
        unpin_node(self, node).await
    }

    /// Adds the usage of a call to the conversation's sums, stored in its metadata under `usage`. A figure that
    /// was never reported stays absent.
    ///
    /// # Errors
    /// The store's `VersionConflict` if the metadata changes in every attempt.
    pub async fn track_usage(&self, usage: &Usage) -> Result<(), EngineError> {
        track_usage(self, usage).await
    }
}
