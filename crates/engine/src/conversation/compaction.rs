//! Compacting a conversation, undoing it, and preparing calls that may need it.

use contexture_compile::Target;
use contexture_ir::NodeId;

use crate::call::CompileOptions;
use crate::compaction::{
    CompactOptions, Compacted, CompactionDraft, PrepareOptions, Prepared, compact_branch,
    draft_compaction, list_compactions, prepare_call, store_compaction, undo_compaction,
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
}
