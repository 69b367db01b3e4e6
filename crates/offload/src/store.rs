//! The contract of stores of copies.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::copy_key::{CopyKey, CopyScope};
use crate::error::OffloadError;

/// A store of copies.
///
/// **By key.** Equal keys mean equal texts. Putting a text again repairs a stored copy that is damaged, and keeps its
/// age.
///
/// **Atomic and durable.** Readers see a whole text or none, despite crashes and concurrent calls; a text that was put
/// survives a crash, as far as the medium can guarantee it. A dropped future leaves nothing or a complete text.
///
/// **Nothing foreign.** Entries whose names are not ours are neither listed nor read nor deleted.
///
/// **Times** are milliseconds since the Unix epoch and come from the caller. They are stored with the text, not in this
/// process, so a restart changes no age. A medium that keeps its own times may report those instead.
#[async_trait]
pub trait OffloadStore: fmt::Debug + Send + Sync {
    /// Puts a text, and returns whether it was there. A text that is stored only here keeps that status if a copy of it
    /// is put. An evicted text is restored.
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError>;

    /// Reads a text, or a range of its bytes clamped to its length.
    ///
    /// # Errors
    /// [`OffloadError::Evicted`] for a tombstone, [`OffloadError::NotFound`] if there is nothing.
    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError>;

    /// Returns the metadata of a text. Does not count as use.
    ///
    /// # Errors
    /// As [`Self::read_copy`].
    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError>;

    /// Lists the texts of a scope, without tombstones.
    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError>;

    /// Removes a text, and leaves a tombstone. Returns whether there was a text.
    async fn evict_copy(&self, key: &CopyKey, at_ms: i64) -> Result<bool, OffloadError>;

    /// Removes everything in a scope, tombstones included, and returns how many texts there were.
    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError>;

    /// To be called after a restart or a crash: removes temporary files that are at least an hour old, and counts texts
    /// and foreign entries.
    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError>;
}

/// Whether a text was already stored when it was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The text was not stored.
    New,
    /// The text was stored, with the same bytes.
    Known,
    /// Other bytes were stored, and have been replaced.
    Repaired,
}

/// Whether the text is stored elsewhere too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyKind {
    /// A copy: the tree has the text.
    Copy,
    /// The only copy of the text.
    OnlyCopy,
}

/// Metadata of a stored text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyMetadata {
    /// Key of the copy.
    pub key: CopyKey,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether the text is stored elsewhere too.
    pub copy_kind: CopyKind,
    /// When it was first put.
    pub created_ms: i64,
    /// When it was last put or read.
    pub used_ms: i64,
}

impl CopyMetadata {
    /// Metadata of a text that is put now, given what was stored under its key.
    pub(crate) fn for_put(
        key: CopyKey,
        bytes: u64,
        holding: CopyKind,
        at_ms: i64,
        old: Option<&Self>,
    ) -> Self {
        Self {
            key,
            bytes,
            copy_kind: old.map_or(holding, |old| old.copy_kind.max(holding)),
            created_ms: old.map_or(at_ms, |old| old.created_ms),
            used_ms: old.map_or(at_ms, |old| old.used_ms.max(at_ms)),
        }
    }
}

/// Result of [`OffloadStore::reconcile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Number and size of the texts.
    pub stats: CopyStats,
    /// Number of unfinished texts that were removed.
    pub unfinished: u64,
    /// Number of foreign entries, which were left alone.
    pub foreign: u64,
}

/// Number and size of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Number of texts that the tree has too.
    pub copies: u64,
    /// Number of texts that are stored only here.
    pub only: u64,
    /// Bytes of both kinds.
    pub bytes: u64,
    /// When the oldest text was first put.
    pub oldest_ms: Option<i64>,
}

impl CopyStats {
    /// Counts copies, for stores that keep no count of their own.
    ///
    /// ```
    /// use contexture_offload::CopyStats;
    ///
    /// assert_eq!(CopyStats::from_copies(&[]).oldest_ms, None);
    /// ```
    #[must_use]
    pub fn from_copies(entries: &[CopyMetadata]) -> Self {
        let held = |holding| {
            entries
                .iter()
                .filter(move |entry| entry.copy_kind == holding)
        };
        Self {
            copies: held(CopyKind::Copy).count() as u64,
            only: held(CopyKind::OnlyCopy).count() as u64,
            bytes: entries.iter().map(|entry| entry.bytes).sum(),
            oldest_ms: entries.iter().map(|entry| entry.created_ms).min(),
        }
    }
}

/// Clamps a range to a text of this length; `None` means the whole text.
pub(crate) fn clamp_range(range: Option<Range<u64>>, length: u64) -> Range<u64> {
    let range = range.unwrap_or(0..length);
    let start = range.start.min(length);
    start..range.end.clamp(start, length)
}
