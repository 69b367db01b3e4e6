//! Evicts copies that have become too old, too many or too large.
//!
//! Nothing is evicted automatically: the caller decides when, and with which limits. Besides listing and removing
//! copies, a sweep only sorts them.

use std::time::Duration;

use crate::copy_key::CopyScope;
use crate::error::OffloadError;
use crate::store::{CopyKind, CopyMetadata, OffloadStore};

/// Limits on what is kept; by default everything is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionLimits {
    /// Copies that were first stored longer ago than this are evicted.
    pub max_age: Option<Duration>,
    /// If there are more copies, the least recently used are evicted.
    pub max_count: Option<u64>,
    /// If they take more bytes in total, the least recently used are evicted.
    pub max_bytes: Option<u64>,
    /// Which copies may be evicted; only these count towards the limits.
    pub evict: Evictable,
}

/// Which copies may be evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evictable {
    /// Only copies of texts that the tree has too.
    #[default]
    Copies,
    /// Also texts that are stored nowhere else, which are then lost for good.
    All,
}

/// Result of a sweep.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// The evicted copies, in the order in which they were evicted.
    pub evicted: Vec<Evicted>,
    /// The copies that could not be evicted.
    pub failed: Vec<FailedEviction>,
    /// How many copies remain of those that may be evicted.
    pub remaining: u64,
    /// Total bytes of the remaining copies.
    pub remaining_bytes: u64,
}

/// A copy that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The evicted copy.
    pub entry: CopyMetadata,
    /// The limit that caused the eviction.
    pub limit: EvictedBy,
}

/// A limit of [`EvictionLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictedBy {
    /// The limit [`EvictionLimits::max_age`].
    Age,
    /// The limit [`EvictionLimits::max_count`].
    Count,
    /// The limit [`EvictionLimits::max_bytes`].
    Bytes,
}

/// A copy that could not be evicted.
#[derive(Debug)]
pub struct FailedEviction {
    /// The copy that is still there.
    pub entry: CopyMetadata,
    /// Why it could not be evicted.
    pub error: OffloadError,
}

impl SweepReport {
    /// Total bytes of the evicted copies.
    #[must_use]
    pub fn evicted_bytes(&self) -> u64 {
        self.evicted.iter().map(|gone| gone.entry.bytes).sum()
    }

    /// How many copies were evicted because of this limit.
    #[must_use]
    pub fn count_evicted_by(&self, by: EvictedBy) -> usize {
        self.evicted.iter().filter(|gone| gone.limit == by).count()
    }
}

/// Evicts copies of a scope, as many as the limits require.
///
/// # Errors
/// If the copies cannot be listed. A copy that cannot be removed is in the report, and others are evicted in its place.
pub async fn sweep_copies(
    store: &dyn OffloadStore,
    scope: &CopyScope,
    limits: &EvictionLimits,
    at_ms: i64,
) -> Result<SweepReport, OffloadError> {
    sweep_copies_with(store, scope, limits, at_ms, |_| {}).await
}

/// Like [`sweep_copies`], and calls `on_evicted` with each copy once it is evicted.
///
/// # Errors
/// As [`sweep_copies`].
pub async fn sweep_copies_with(
    store: &dyn OffloadStore,
    scope: &CopyScope,
    limits: &EvictionLimits,
    at_ms: i64,
    mut on_evicted: impl FnMut(&Evicted) + Send,
) -> Result<SweepReport, OffloadError> {
    let mut entries = store.list_copies(scope).await?;
    entries.retain(|entry| limits.evict == Evictable::All || entry.copy_kind == CopyKind::Copy);
    // Too old first, then least recently used; ties are ordered by key, so that all sweeps use the same order.
    entries.sort_by_key(|entry| (!limits.is_too_old(entry, at_ms), entry.used_ms, entry.key));
    let mut report = SweepReport {
        remaining: entries.len() as u64,
        remaining_bytes: entries.iter().map(|entry| entry.bytes).sum(),
        ..SweepReport::default()
    };
    for entry in entries {
        let Some(by) = limits.exceeded_limit(&entry, &report, at_ms) else {
            break;
        };
        match store.evict_copy(&entry.key, at_ms).await {
            // `Ok(false)` too: another sweep was faster, and the copy is gone all the same.
            Ok(_) => {
                report.remaining -= 1;
                report.remaining_bytes -= entry.bytes;
                let evicted = Evicted { entry, limit: by };
                on_evicted(&evicted);
                report.evicted.push(evicted);
            }
            Err(error) => report.failed.push(FailedEviction { entry, error }),
        }
    }
    Ok(report)
}

impl EvictionLimits {
    fn is_too_old(&self, entry: &CopyMetadata, at_ms: i64) -> bool {
        let age = at_ms.saturating_sub(entry.created_ms);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
        self.max_age.is_some_and(|most| age > most)
    }

    /// Returns the limit for which this copy has to be evicted, if there is one.
    fn exceeded_limit(
        &self,
        entry: &CopyMetadata,
        report: &SweepReport,
        at_ms: i64,
    ) -> Option<EvictedBy> {
        if self.is_too_old(entry, at_ms) {
            return Some(EvictedBy::Age);
        }
        if self.max_count.is_some_and(|most| report.remaining > most) {
            return Some(EvictedBy::Count);
        }
        let over = self
            .max_bytes
            .is_some_and(|most| report.remaining_bytes > most);
        over.then_some(EvictedBy::Bytes)
    }
}
