//! Copies in memory, for tests: the strictest implementation of the contract.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::copy_key::{CopyKey, CopyScope};
use crate::error::OffloadError;
use crate::store::{
    CopyKind, CopyMetadata, CopyStats, OffloadStore, PutOutcome, Reconciled, clamp_range,
};

/// Copies that live as long as the store value.
#[derive(Debug, Default)]
pub struct MemoryOffloadStore {
    texts: Mutex<BTreeMap<CopyKey, StoredCopy>>,
}

#[derive(Debug)]
enum StoredCopy {
    Text(Bytes, CopyMetadata),
    Tombstone,
}

impl MemoryOffloadStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock_texts(&self) -> MutexGuard<'_, BTreeMap<CopyKey, StoredCopy>> {
        // Each change is one assignment, so a panic cannot leave half of it.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_stored_copy<T>(
    key: &CopyKey,
    held: Option<&mut StoredCopy>,
    take: impl FnOnce(&Bytes, &mut CopyMetadata) -> T,
) -> Result<T, OffloadError> {
    match held {
        Some(StoredCopy::Text(text, entry)) => Ok(take(text, entry)),
        Some(StoredCopy::Tombstone) => Err(OffloadError::Evicted { key: *key }),
        None => Err(OffloadError::NotFound { key: *key }),
    }
}

#[async_trait]
impl OffloadStore for MemoryOffloadStore {
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        let mut texts = self.lock_texts();
        let (put, before) = match texts.get(key) {
            Some(StoredCopy::Text(old, before)) if *old == text => {
                (PutOutcome::Known, Some(before))
            }
            Some(StoredCopy::Text(_, before)) => (PutOutcome::Repaired, Some(before)),
            Some(StoredCopy::Tombstone) | None => (PutOutcome::New, None),
        };
        let entry = CopyMetadata::for_put(*key, text.len() as u64, holding, at_ms, before);
        texts.insert(*key, StoredCopy::Text(text, entry));
        Ok(put)
    }

    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        with_stored_copy(key, self.lock_texts().get_mut(key), |text, entry| {
            entry.used_ms = entry.used_ms.max(at_ms);
            let range = clamp_range(range, entry.bytes);
            let ends =
                [range.start, range.end].map(|end| usize::try_from(end).unwrap_or(text.len()));
            text.slice(ends[0]..ends[1])
        })
    }

    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        with_stored_copy(key, self.lock_texts().get_mut(key), |_, entry| *entry)
    }

    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        let texts = self.lock_texts();
        let entries = texts.values().filter_map(|held| match held {
            StoredCopy::Text(_, entry) => Some(*entry),
            StoredCopy::Tombstone => None,
        });
        Ok(entries.filter(|entry| scope.contains(&entry.key)).collect())
    }

    async fn evict_copy(&self, key: &CopyKey, _at_ms: i64) -> Result<bool, OffloadError> {
        let mut texts = self.lock_texts();
        match texts.get_mut(key) {
            Some(held @ StoredCopy::Text(..)) => *held = StoredCopy::Tombstone,
            Some(StoredCopy::Tombstone) | None => return Ok(false),
        }
        Ok(true)
    }

    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        let mut cleared = 0;
        self.lock_texts().retain(|key, held| {
            let goes = scope.contains(key);
            cleared += u64::from(goes && matches!(held, StoredCopy::Text(..)));
            !goes
        });
        Ok(cleared)
    }

    async fn reconcile(&self, _at_ms: i64) -> Result<Reconciled, OffloadError> {
        let stats = CopyStats::from_copies(&self.list_copies(&CopyScope::All).await?);
        Ok(Reconciled {
            stats,
            ..Reconciled::default()
        })
    }
}
