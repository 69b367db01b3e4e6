//! The contract.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::copy_key::{CopyKey, CopyScope};
use crate::error::OffloadError;

/// A place for copies.
///
/// **By key.** Equal keys mean equal texts. Putting a text again repairs what lies there, if it is not the same any
/// more, and keeps its age.
///
/// **Atomic and durable.** Whoever reads sees a whole text or none, whatever crashes or runs beside; what was put
/// survives a crash, as far as the medium can. A dropped future leaves nothing or a complete text.
///
/// **Nothing foreign.** What is not named as ours is neither listed nor read nor deleted.
///
/// **Times** are milliseconds since the Unix epoch and come from the caller. They lie with the text, not in this
/// process: a restart changes no age. A medium that keeps its own times may say those instead.
#[async_trait]
pub trait OffloadStore: fmt::Debug + Send + Sync {
    /// Puts a text, and says whether it was not there yet. A text that is held only here stays so if a copy of it
    /// is put. What was evicted is there again.
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError>;

    /// A text, or a range of its bytes cut to its length.
    ///
    /// # Errors
    /// [`OffloadError::Evicted`] for a tombstone, [`OffloadError::NotFound`] if there is nothing.
    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError>;

    /// What is known of a text. Does not count as use.
    ///
    /// # Errors
    /// As [`Self::read_copy`].
    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError>;

    /// The texts there are, by key; tombstones are none.
    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError>;

    /// Removes a text, and leaves a tombstone. Says whether there was one.
    async fn evict_copy(&self, key: &CopyKey, at_ms: i64) -> Result<bool, OffloadError>;

    /// Removes everything of a scope, tombstones too, and says how many texts there were.
    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError>;

    /// After a restart or a crash: removes what unfinished calls left an hour ago or earlier, and counts.
    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError>;
}

/// Whether a text was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// It was not.
    New,
    /// It was, with the same bytes.
    Known,
    /// Something else was; now it is right.
    Repaired,
}

/// Whether there is another text than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyKind {
    /// A copy: the tree has the text.
    Copy,
    /// The only one.
    OnlyCopy,
}

/// What is known of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyMetadata {
    /// Key of the copy.
    pub key: CopyKey,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether there is another.
    pub copy_kind: CopyKind,
    /// When it was put first.
    pub created_ms: i64,
    /// When it was put or read last.
    pub used_ms: i64,
}

impl CopyMetadata {
    /// A text put at a time, over what was there by its name.
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

/// What a store found of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The texts there are.
    pub stats: CopyStats,
    /// Unfinished texts that were removed.
    pub unfinished: u64,
    /// Things that are not ours, and were left alone.
    pub foreign: u64,
}

/// Number and size of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Number of copies of what the tree has.
    pub copies: u64,
    /// Texts held only here.
    pub only: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// When the oldest was put first.
    pub oldest_ms: Option<i64>,
}

impl CopyStats {
    /// Counts these copies: for a store that keeps no count of its own.
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

/// The part of a text of this length that a range asks for.
pub(crate) fn clamp_range(range: Option<Range<u64>>, length: u64) -> Range<u64> {
    let range = range.unwrap_or(0..length);
    let start = range.start.min(length);
    start..range.end.clamp(start, length)
}
