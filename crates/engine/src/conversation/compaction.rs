//! Compacting a conversation, undoing it, and preparing calls that may need it.

use contexture_compile::Target;
use contexture_ir::NodeId;

use crate::call::CompileOptions;
use crate::compaction::{
    AnsweredRequest, CompactOptions, Compacted, CompactionDraft, PrepareOptions, Prepared,
    compact_branch, draft_compaction, list_compactions, prepare_call, store_compaction,
    summarise_behind, undo_compaction,
};
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::state::CoverEntry;

impl Conversation {
    /// Compacts this branch: replaces the older part in calls by a manifest, and by a summary if the compactor
    /// writes one. The nodes stay; [`Self::uncompact`] undoes it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::Target;
    /// use contexture_engine::CompactOptions;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    ///
    /// // Eight long messages are in the conversation.
    /// let target = Target::openai_chat("gpt-4o");
    /// let before = chat.compile(&target).await?.report.totals.tokens;
    /// let compacted = chat.compact(&target, &CompactOptions::default()).await?;
    /// assert!(compacted.draft.summary_tokens < compacted.draft.tokens);
    /// assert!(chat.compile(&target).await?.report.totals.tokens < before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NothingToCompact`], [`EngineError::CoverOverlap`], the store's `StateConflict` if
    /// somebody compacted meanwhile (nothing is stored then), or its other errors.
    pub async fn compact(
        &self,
        target: &Target,
        options: &CompactOptions,
    ) -> Result<Compacted, EngineError> {
        compact_branch(self, target, options).await
    }

    /// Drafts what [`Self::compact`] would store. Asks the compactor, stores nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{CompactOptions, Engine};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    /// let target = Target::openai_chat("gpt-4o");
    /// let draft = chat.draft_compaction(&target, &CompactOptions::default()).await?;
    /// println!("{} items would become:\n{}", draft.items, draft.summary.join("\n"));
    /// assert!(chat.compactions().await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::compact`].
    pub async fn draft_compaction(
        &self,
        target: &Target,
        options: &CompactOptions,
    ) -> Result<CompactionDraft, EngineError> {
        draft_compaction(self, target, options).await
    }

    /// Stores a drafted compaction: the item and its cover, in one transaction.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{CompactOptions, Engine};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    /// let target = Target::openai_chat("gpt-4o");
    /// let draft = chat.draft_compaction(&target, &CompactOptions::default()).await?;
    /// // Somebody has read the draft and agrees.
    /// let compacted = chat.store_compaction(draft).await?;
    /// assert_eq!(chat.compactions().await?[0].compaction, compacted.node);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's; `StateConflict` if somebody compacted since the draft was made.
    pub async fn store_compaction(&self, draft: CompactionDraft) -> Result<Compacted, EngineError> {
        store_compaction(self, draft).await
    }

    /// Undoes a compaction: the nodes it covers are shown again on this branch. The item stays.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{CompactOptions, Engine};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    /// let target = Target::openai_chat("gpt-4o");
    /// let before = chat.compile(&target).await?.payload.to_json();
    /// let compacted = chat.compact(&target, &CompactOptions::default()).await?;
    /// chat.uncompact(compacted.node).await?;
    /// assert_eq!(chat.compile(&target).await?.payload.to_json(), before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NotInEffect`] if it stands for nothing here, or the store's.
    pub async fn uncompact(&self, compaction: NodeId) -> Result<(), EngineError> {
        undo_compaction(self, compaction).await
    }

    /// Lists the compactions in effect on this branch, in the order they were stored.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{CompactOptions, Engine};
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    /// chat.compact(&Target::openai_chat("gpt-4o"), &CompactOptions::default()).await?;
    /// let compactions = chat.compactions().await?;
    /// assert_eq!(compactions.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::StoredState`] if the entry cannot be read, or the store's.
    pub async fn compactions(&self) -> Result<Vec<CoverEntry>, EngineError> {
        list_compactions(self).await
    }

    /// Compiles a call, compacting the history first if it has grown too large: compile, compact, compile
    /// again, three times at most. Where nothing can be compacted, the call is that of [`Self::compile`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::Target;
    /// use contexture_engine::PrepareOptions;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(200));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    ///
    /// // The conversation holds more than this window: the older part is compacted first.
    /// let target = Target::openai_chat("gpt-4o").window(4_000).reserve(500);
    /// let prepared = chat.prepare(&target, &PrepareOptions::default()).await?;
    /// assert!(!prepared.compacted.is_empty());
    /// assert!(prepared.call.report.totals.tokens <= 3_500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::compile`] and [`Self::compact`]; what others stored meanwhile is no error.
    pub async fn prepare(
        &self,
        target: &Target,
        options: &PrepareOptions,
    ) -> Result<Prepared, EngineError> {
        prepare_call(self, target, options, CompileOptions::default()).await
    }

    /// Prepares as [`Self::prepare`], with options for the compile.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::{Contribution, Target};
    /// use contexture_engine::{CompileOptions, PrepareOptions};
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("What is open?")]).await?;
    /// let file = [Contribution::context("open_file", "src/main.rs")];
    /// let options = CompileOptions { contributions: &file, ..CompileOptions::default() };
    /// let target = Target::openai_chat("gpt-4o");
    /// let prepared = chat.prepare_with(&target, &PrepareOptions::default(), options).await?;
    /// assert!(prepared.compacted.is_empty(), "it fits as it is");
    /// assert!(prepared.call.payload.to_json().contains("src/main.rs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub async fn prepare_with(
        &self,
        target: &Target,
        options: &PrepareOptions,
        compile: CompileOptions<'_>,
    ) -> Result<Prepared, EngineError> {
        prepare_call(self, target, options, compile).await
    }
    /// Waits until no summary is being written in the background for this conversation: before a program ends, say, or in a
    /// test. Calls need not wait; where no summary is ready, a manifest stands alone.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use std::sync::Arc;
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # use contexture_models::{Model, ModelRequest, ScriptedModel};
    /// # use contexture_wire::Format;
    /// use contexture_engine::{BackgroundSummary, PrepareOptions, Strategy, Trigger};
    /// # let summary = "<summary>Parts 0 to 7 were read, one by one, and nothing was found in them.</summary>";
    /// # let model = Arc::new(ScriptedModel::with_texts(Format::OpenAiChat, ["Read.", summary]));
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// # for part in 0..8 {
    /// #     let text = format!("Part {part}: {}", "and so on, ".repeat(170));
    /// #     chat.save([user(text.as_str()), assistant_text("Read.")]).await?;
    /// # }
    /// # chat.save([user("Go on.")]).await?;
    ///
    /// let target = Target::openai_chat("gpt-4o").window(8_000).reserve(1_000);
    /// let mut options = PrepareOptions {
    ///     trigger: Trigger::Share(90),
    ///     strategies: vec![
    ///         Strategy::Summary(BackgroundSummary::by_own_model(model.clone())),
    ///         Strategy::Manifest,
    ///     ],
    ///     ..PrepareOptions::default()
    /// };
    /// // The history takes more than 70 per cent of the space: once the answer is recorded, the model is asked again.
    /// let prepared = chat.prepare(&target, &options).await?;
    /// # let request = ModelRequest {
    /// #     format: Format::OpenAiChat,
    /// #     model: "gpt-4o".into(),
    /// #     payload: prepared.call.payload.to_json(),
    /// # };
    /// let answer = model.answer(request).await?;
    /// chat.record(&prepared.call, &answer.body).await?;
    /// chat.wait_for_summary().await;
    /// assert_eq!(model.requests().len(), 2);
    /// // The compaction to come waits for no model.
    /// options.trigger = Trigger::Share(50);
    /// let prepared = chat.prepare(&target, &options).await?;
    /// assert!(prepared.compacted[0].draft.summary[0].contains("Parts 0 to 7 were read"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn wait_for_summary(&self) {
        self.engine().background_work().wait_until_idle(self).await;
    }

    /// Begins a summary in the background behind a request that was sent as a client wrote it and answered, if the options want
    /// one and the request has the size for it. For calls that were prepared here, recording their answer does it.
    ///
    /// # Errors
    /// The catalogue's, for a model that is not known.
    pub fn summarise_behind(&self, answered: AnsweredRequest<'_>) -> Result<(), EngineError> {
        summarise_behind(self, answered)
    }
}
