//! Writing to a conversation: fragments, drafts, metadata, pins, copies of outputs.

use contexture_compile::CallContext;
use contexture_ir::{Fragment, Item, NodeId, Raw, Usage};
use contexture_store::{Appended, NewItem};

use crate::append::{
    RunStep, drop_rule, new_item, pin_node, reconcile_copies, restore_rule, unpin_node,
};
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
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::{Item, Message, NodeId, Role};
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let item: Item = Message::text(Role::User, "Hello").into();
    /// let stored = chat.new_item(NodeId::derive("doc", &[b"1"]), &item, None);
    /// assert!(stored.meaning_hash.is_some());
    /// # assert_eq!(chat.head().await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new_item(&self, id: NodeId, item: &Item, step: Option<RunStep>) -> NewItem {
        new_item(self, id, item, step)
    }

    /// Appends items of a run's step together with the changes of its layers.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::StepAppend;
    /// use contexture_ir::{Item, Message, NodeId, Role};
    /// use contexture_store::AppendPoint;
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let item: Item = Message::text(Role::User, "Hello").into();
    /// let mut session = chat.layer_session(None).await?;
    /// let step = StepAppend {
    ///     point: AppendPoint::Tip { branch: chat.branch() },
    ///     items: vec![chat.new_item(NodeId::derive("doc", &[b"1"]), &item, None)],
    ///     layer_items: vec![item],
    ///     changes: Vec::new(),
    /// };
    /// let appended = chat.append_step(step, &mut session).await?;
    /// assert_eq!(chat.head().await?, appended.head);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// The list belongs to the handle from then on. Each append also records it on the path, where other handles read it and
    /// where a rewind brings back the list of that time. Fragments with `persist: false` are not recorded.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// use contexture_ir::{hint, role, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.set([role("You are a support agent."), hint("Refunds above $50 need approval.")])?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::openai_chat("gpt-4o")).await?;
    /// assert!(call.payload.to_json().contains("need approval"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NotData`] for a fragment that carries a message.
    pub fn set(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        set_fragments(self, fragments)
    }

    /// Adds fragments after those that the model reads: after the list that was [set](Self::set) on this handle, else after
    /// the one that the path carries. The next append on this handle's branch records them.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{hint, role, user};
    /// # let engine = Engine::in_memory();
    /// # let chat = engine.conversation("c").open().await?;
    /// chat.set([role("You are a support agent.")])?;
    /// chat.save([user("Hello")]).await?;
    /// // A handle that is opened later has the list of the path, and adds to it.
    /// let later = engine.conversation("c").open().await?;
    /// later.add([hint("Be brief.")])?;
    /// assert_eq!(later.fragments().await?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn add(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        add_fragments(self, fragments)
    }

    /// Removes the fragments with this id from those that the model reads, and returns their number. As with
    /// [`add`](Self::add), the next append records the change.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::hint;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set([hint("Be brief.").with_id("tone"), hint("Refunds above $50 need approval.")])?;
    /// assert_eq!(chat.unset("tone").await?, 1);
    /// assert_eq!(chat.fragments().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's, when the list of the path is read.
    pub async fn unset(&self, id: &str) -> Result<usize, EngineError> {
        remove_fragments(self, id).await
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
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set_title(Some("Refunds")).await?;
    /// assert_eq!(chat.info().await?.title.as_deref(), Some("Refunds"));
    /// chat.set_title(None).await?;
    /// assert_eq!(chat.info().await?.title, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn set_title(&self, title: Option<&str>) -> Result<(), EngineError> {
        set_title(self, title).await
    }

    /// Sets or, with `None`, removes one metadata entry; others stay.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::Raw;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set_metadata("stage", Some(Raw::string("draft"))).await?;
    /// assert!(chat.info().await?.metadata.contains_key("stage"));
    /// chat.set_metadata("stage", None).await?;
    /// assert!(chat.info().await?.metadata.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn set_metadata(&self, key: &str, value: Option<Raw>) -> Result<(), EngineError> {
        set_metadata(self, key, value).await
    }

    /// Puts the copies that are missing, of all branches' outputs: what was stored while the place failed, or before
    /// [`Engine::with_offload`](crate::Engine::with_offload). Without that it does nothing.
    ///
    /// Reads all of the conversation's paths.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    ///
    /// use contexture_ir::{FunctionCall, FunctionCallOutput, Output};
    /// use contexture_offload::MemoryOffloadStore;
    /// # use contexture_engine::Engine;
    ///
    /// let engine = Engine::in_memory();
    /// let mut draft = engine.conversation("c").open().await?.draft();
    /// draft.push_item(FunctionCall::new("call_1", "read_log", "{}"));
    /// draft.push_item(FunctionCallOutput::new("call_1", Output::Text("line\n".repeat(1_000))));
    /// draft.commit().await?;
    ///
    /// // Copies are wanted only now: those of earlier outputs are made.
    /// let engine = engine.with_offload(Arc::new(MemoryOffloadStore::new()), 1_000);
    /// let chat = engine.conversation("c").open().await?;
    /// assert_eq!(chat.reconcile_copies().await?.put, 1);
    /// assert_eq!(chat.reconcile_copies().await?.put, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Offload`] if what is there cannot be listed, or the store's.
    pub async fn reconcile_copies(&self) -> Result<CopyReport, EngineError> {
        reconcile_copies(self).await
    }

    /// Returns an empty draft, which belongs to the branch that this handle is on now.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut draft = chat.draft();
    /// draft.push(user("Hello"));
    /// draft.push(assistant_text("Hi."));
    /// assert!(chat.messages(MessageView::User).await?.is_empty());
    /// draft.commit().await?;
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn draft(&self) -> Draft {
        new_draft(self)
    }

    /// Stores messages: pushes them to a draft and commits it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Hello"), assistant_text("Hi.")]).await?;
    /// assert_eq!(saved.messages.len(), 2);
    /// assert_eq!(saved.head, chat.head().await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello"), assistant_text("Hi.")]).await?;
    /// let rule = chat.save([user("Never call before noon."), assistant_text("Noted.")]).await?;
    /// chat.pin(rule.nodes[0]).await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    /// // Many long messages later, the rest was left out for lack of room.
    /// let call = chat.compile(&Target::openai_chat("gpt-4o").window(2_500).reserve(200)).await?;
    /// assert!(!call.report.omitted.is_empty());
    /// assert!(call.payload.to_json().contains("before noon"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown node; `StateConflict` if the pins changed concurrently; or the store's.
    pub async fn pin(&self, node: NodeId) -> Result<(), EngineError> {
        pin_node(self, node).await
    }

    /// Removes a pin and returns whether there was one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Never call before noon.")]).await?;
    /// chat.pin(saved.nodes[0]).await?;
    /// assert!(chat.unpin(saved.nodes[0]).await?);
    /// assert!(!chat.unpin(saved.nodes[0]).await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn unpin(&self, node: NodeId) -> Result<bool, EngineError> {
        unpin_node(self, node).await
    }

    /// Drops a [standing rule](Self::rules) on this branch and returns whether it was in force: it is not shown again once its message is out of
    /// view. The message stays. Rewinding takes the drop back.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Always answer in German. What is a node?")]).await?;
    /// let rule = chat.rules().await?[0].id.clone();
    /// assert!(chat.drop_rule(rule.as_str()).await?);
    /// assert!(chat.rules().await?[0].is_dropped);
    /// assert!(chat.restore_rule(rule.as_str()).await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `UnknownRule` if the branch has no such rule; `StateConflict` if the list changed concurrently; or the store's.
    pub async fn drop_rule(&self, id: &str) -> Result<bool, EngineError> {
        drop_rule(self, id).await
    }

    /// Puts a dropped rule into force again and returns whether it was dropped.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// assert!(!chat.restore_rule("of nobody").await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::drop_rule`].
    pub async fn restore_rule(&self, id: &str) -> Result<bool, EngineError> {
        restore_rule(self, id).await
    }

    /// Adds the usage of a call to the conversation's sums, stored in its metadata under `usage`. A figure that
    /// was never reported stays absent. Sums that an imported chat brought along go on.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::Usage;
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let usage = Usage { input_tokens: Some(40), ..Usage::default() };
    /// chat.track_usage(&usage).await?;
    /// chat.track_usage(&usage).await?;
    /// let sums = &chat.info().await?.metadata["usage"];
    /// assert!(sums.get().contains("80"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NotUsage`] if the application keeps something else there; the store's `VersionConflict` if the metadata
    /// changes in every attempt.
    pub async fn track_usage(&self, usage: &Usage) -> Result<(), EngineError> {
        track_usage(self, usage).await
    }
}
