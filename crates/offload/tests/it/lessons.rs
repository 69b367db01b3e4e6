//! Faults that stores of offloaded texts are known for, each brought about.
//!
//! The table of all of them is docs/behaviour/compile-lessons.md. Not here: names, links and crashes (`files`), caps
//! (`sweeps`).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use contexture_offload::{
    Caps, Entry, EvictedBy, FsOffloadStore, Holding, Key, MemoryOffloadStore, OffloadError,
    OffloadStore, Put, Reconciled, Scope, sweep,
};

use crate::support::{key, put};

/// A store that counts what is asked of it.
#[derive(Debug, Default)]
struct Counting {
    store: MemoryOffloadStore,
    lists: AtomicUsize,
    evicts: AtomicUsize,
}

#[async_trait]
impl OffloadStore for Counting {
    async fn put(
        &self,
        key: &Key,
        text: Bytes,
        holding: Holding,
        at_ms: i64,
    ) -> Result<Put, OffloadError> {
        self.store.put(key, text, holding, at_ms).await
    }

    async fn get(
        &self,
        key: &Key,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        self.store.get(key, range, at_ms).await
    }

    async fn stat(&self, key: &Key) -> Result<Entry, OffloadError> {
        self.store.stat(key).await
    }

    async fn list(&self, scope: &Scope) -> Result<Vec<Entry>, OffloadError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.store.list(scope).await
    }

    async fn evict(&self, key: &Key, at_ms: i64) -> Result<bool, OffloadError> {
        self.evicts.fetch_add(1, Ordering::Relaxed);
        self.store.evict(key, at_ms).await
    }

    async fn clear(&self, scope: &Scope) -> Result<u64, OffloadError> {
        self.store.clear(scope).await
    }

    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        self.store.reconcile(at_ms).await
    }
}

/// Taking everything away is one listing and one removal for each text, not a search for each.
#[tokio::test]
async fn a_sweep_of_many_texts_is_no_square() {
    let store = Counting::default();
    let count = 20_000;
    for time in 0..count {
        put(&store, &time.to_string(), time).await;
    }
    let caps = Caps {
        max_count: Some(7),
        max_bytes: Some(u64::MAX),
        ..Caps::default()
    };
    let swept = sweep(&store, &Scope::All, &caps, count).await.unwrap();
    let gone = usize::try_from(count).unwrap() - 7;
    assert_eq!(swept.count(EvictedBy::Count), gone);
    assert_eq!(swept.evicted[0].entry.key, key("0"));
    assert_eq!(store.lists.load(Ordering::Relaxed), 1);
    assert_eq!(store.evicts.load(Ordering::Relaxed), gone);
}

/// A place that cannot be written is no trouble until something is put there, and then an error with the reason.
#[tokio::test]
async fn an_unusable_place_is_told_when_it_is_used() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let store = FsOffloadStore::new(file.join("offload"));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    let text = Bytes::from_static(b"text");
    let error = store
        .put(&key("text"), text, Holding::Copy, 1)
        .await
        .unwrap_err();
    assert!(matches!(error, OffloadError::Storage { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "in the way");
}
