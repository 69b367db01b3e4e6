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
    /// # Errors
    /// The store's; `StateConflict` if somebody compacted since the draft was made.
    pub async fn store_compaction(&self, draft: CompactionDraft) -> Result<Compacted, EngineError> {
        store_compaction(self, draft).await
    }

    /// Undoes a compaction: the nodes it covers are shown again on this branch. The item stays.
    ///
    /// # Errors
    /// [`EngineError::NotInEffect`] if it stands for nothing here, or the store's.
    pub async fn uncompact(&self, compaction: NodeId) -> Result<(), EngineError> {
        undo_compaction(self, compaction).await
    }

    /// Lists the compactions in effect on this branch, in the order they were stored.
    ///
    /// # Errors
    /// [`EngineError::StoredState`] if the entry cannot be read, or the store's.
    pub async fn compactions(&self) -> Result<Vec<CoverEntry>, EngineError> {
        list_compactions(self).await
    }

    /// Compiles a call, compacting the history first if it has grown too large: compile, compact, compile
    /// again, three times at most. Where nothing can be compacted, the call is that of [`Self::compile`].
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
