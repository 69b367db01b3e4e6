//! Copies in memory: for tests, and the strictest reading of the contract.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::OffloadError;
use crate::key::{Key, Scope};
use crate::store::{Entry, Holding, OffloadStore, Put, Reconciled, Stats, within};

/// Copies that live as long as the value.
#[derive(Debug, Default)]
pub struct MemoryOffloadStore {
    texts: Mutex<BTreeMap<Key, Held>>,
}

#[derive(Debug)]
enum Held {
    Text(Bytes, Entry),
    Gone,
}

impl MemoryOffloadStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn texts(&self) -> MutexGuard<'_, BTreeMap<Key, Held>> {
        // Each change is one assignment: a panic leaves no half of it.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn found<T>(
    key: &Key,
    held: Option<&mut Held>,
    take: impl FnOnce(&Bytes, &mut Entry) -> T,
) -> Result<T, OffloadError> {
    match held {
        Some(Held::Text(text, entry)) => Ok(take(text, entry)),
        Some(Held::Gone) => Err(OffloadError::Evicted { key: *key }),
        None => Err(OffloadError::NotFound { key: *key }),
    }
}

#[async_trait]
impl OffloadStore for MemoryOffloadStore {
    async fn put(
        &self,
        key: &Key,
        text: Bytes,
        holding: Holding,
        at_ms: i64,
    ) -> Result<Put, OffloadError> {
        let mut texts = self.texts();
        let (put, before) = match texts.get(key) {
            Some(Held::Text(old, before)) if *old == text => (Put::Known, Some(before)),
            Some(Held::Text(_, before)) => (Put::Repaired, Some(before)),
            Some(Held::Gone) | None => (Put::New, None),
        };
        let entry = Entry::put(*key, text.len() as u64, holding, at_ms, before);
        texts.insert(*key, Held::Text(text, entry));
        Ok(put)
    }

    async fn get(
        &self,
        key: &Key,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        found(key, self.texts().get_mut(key), |text, entry| {
            entry.used_ms = entry.used_ms.max(at_ms);
            let range = within(range, entry.bytes);
            let ends =
                [range.start, range.end].map(|end| usize::try_from(end).unwrap_or(text.len()));
            text.slice(ends[0]..ends[1])
        })
    }

    async fn stat(&self, key: &Key) -> Result<Entry, OffloadError> {
        found(key, self.texts().get_mut(key), |_, entry| *entry)
    }

    async fn list(&self, scope: &Scope) -> Result<Vec<Entry>, OffloadError> {
        let texts = self.texts();
        let entries = texts.values().filter_map(|held| match held {
            Held::Text(_, entry) => Some(*entry),
            Held::Gone => None,
        });
        Ok(entries.filter(|entry| scope.has(&entry.key)).collect())
    }

    async fn evict(&self, key: &Key, _at_ms: i64) -> Result<bool, OffloadError> {
        let mut texts = self.texts();
        match texts.get_mut(key) {
            Some(held @ Held::Text(..)) => *held = Held::Gone,
            Some(Held::Gone) | None => return Ok(false),
        }
        Ok(true)
    }

    async fn clear(&self, scope: &Scope) -> Result<u64, OffloadError> {
        let mut cleared = 0;
        self.texts().retain(|key, held| {
            let goes = scope.has(key);
            cleared += u64::from(goes && matches!(held, Held::Text(..)));
            !goes
        });
        Ok(cleared)
    }

    async fn reconcile(&self, _at_ms: i64) -> Result<Reconciled, OffloadError> {
        let stats = Stats::of(&self.list(&Scope::All).await?);
        Ok(Reconciled {
            stats,
            ..Reconciled::default()
        })
    }
}
