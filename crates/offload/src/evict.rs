//! Caps: what goes when copies grow too old, too many or too large.
//!
//! Never by itself: whoever calls decides when, and with which caps. Sorting is all that costs more than the listing.

use std::time::Duration;

use crate::copy_key::CopyScope;
use crate::error::OffloadError;
use crate::store::{CopyKind, CopyMetadata, OffloadStore};

/// How much may stay. By default everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionLimits {
    /// Texts that were put first longer ago go.
    pub max_age: Option<Duration>,
    /// If there are more, those used longest ago go.
    pub max_count: Option<u64>,
    /// If they have more bytes in all, those used longest ago go.
    pub max_bytes: Option<u64>,
    /// Which of them may go, and count.
    pub evict: Evictable,
}

/// Which texts may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evictable {
    /// Copies of what the tree has.
    #[default]
    Copies,
    /// Those that are held only here too: their text is gone for ever.
    EvenTheOnly,
}

/// What a sweep did.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// What went, in the order in which it went.
    pub evicted: Vec<Evicted>,
    /// What should have gone and did not.
    pub failed: Vec<FailedEviction>,
    /// Texts that stay, of those that might have gone.
    pub remaining: u64,
    /// Bytes of the remaining texts.
    pub remaining_bytes: u64,
}

/// A text that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The evicted copy.
    pub entry: CopyMetadata,
    /// By which cap.
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

/// A text that should have gone.
#[derive(Debug)]
pub struct FailedEviction {
    /// The copy that is still there.
    pub entry: CopyMetadata,
    /// Why it is still there.
    pub error: OffloadError,
}

impl SweepReport {
    /// Bytes of what went.
    #[must_use]
    pub fn evicted_bytes(&self) -> u64 {
        self.evicted.iter().map(|gone| gone.entry.bytes).sum()
    }

    /// How many went by a cap.
    #[must_use]
    pub fn count_evicted_by(&self, by: EvictedBy) -> usize {
        self.evicted.iter().filter(|gone| gone.limit == by).count()
    }
}

/// Applies caps to the texts of a scope.
///
/// # Errors
/// When they cannot be listed; a text that cannot be removed is in the report, and others go in its place.
pub async fn sweep_copies(
    store: &dyn OffloadStore,
    scope: &CopyScope,
    caps: &EvictionLimits,
    at_ms: i64,
) -> Result<SweepReport, OffloadError> {
    sweep_copies_with(store, scope, caps, at_ms, |_| {}).await
}

/// The same, telling of each text once it is gone.
///
/// # Errors
/// As [`sweep_copies`].
pub async fn sweep_copies_with(
    store: &dyn OffloadStore,
    scope: &CopyScope,
    caps: &EvictionLimits,
    at_ms: i64,
    mut hook: impl FnMut(&Evicted) + Send,
) -> Result<SweepReport, OffloadError> {
    let mut entries = store.list_copies(scope).await?;
    entries
        .retain(|entry| caps.evict == Evictable::EvenTheOnly || entry.copy_kind == CopyKind::Copy);
    // Too old first, then those used longest ago; by key among equals, so that two sweeps agree.
    entries.sort_by_key(|entry| (!caps.is_too_old(entry, at_ms), entry.used_ms, entry.key));
    let mut swept = SweepReport {
        remaining: entries.len() as u64,
        remaining_bytes: entries.iter().map(|entry| entry.bytes).sum(),
        ..SweepReport::default()
    };
    for entry in entries {
        let Some(by) = caps.exceeded_limit(&entry, &swept, at_ms) else {
            break;
        };
        match store.evict_copy(&entry.key, at_ms).await {
            // Somebody else was faster: gone is gone.
            Ok(_) => {
                swept.remaining -= 1;
                swept.remaining_bytes -= entry.bytes;
                let evicted = Evicted { entry, limit: by };
                hook(&evicted);
                swept.evicted.push(evicted);
            }
            Err(error) => swept.failed.push(FailedEviction { entry, error }),
        }
    }
    Ok(swept)
}

impl EvictionLimits {
    fn is_too_old(&self, entry: &CopyMetadata, at_ms: i64) -> bool {
        let age = at_ms.saturating_sub(entry.created_ms);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
        self.max_age.is_some_and(|most| age > most)
    }

    /// The cap by which this text has to go, if it has to.
    fn exceeded_limit(
        &self,
        entry: &CopyMetadata,
        swept: &SweepReport,
        at_ms: i64,
    ) -> Option<EvictedBy> {
        if self.is_too_old(entry, at_ms) {
            return Some(EvictedBy::Age);
        }
        if self.max_count.is_some_and(|most| swept.remaining > most) {
            return Some(EvictedBy::Count);
        }
        let over = self
            .max_bytes
            .is_some_and(|most| swept.remaining_bytes > most);
        over.then_some(EvictedBy::Bytes)
    }
}
