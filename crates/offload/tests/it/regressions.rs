//! Faults that stores of offloaded texts are known for, each brought about.
//!
//! The table of all of them is docs/behaviour/compile-lessons.md. Not here: names, links and crashes (`files`), caps
//! (`sweeps`).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use contexture_offload::{
    CopyKey, CopyKind, CopyMetadata, CopyScope, EvictedBy, EvictionLimits, FsOffloadStore,
    MemoryOffloadStore, OffloadError, OffloadStore, PutOutcome, Reconciled, sweep_copies,
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
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        self.store.put_copy(key, text, holding, at_ms).await
    }

    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        self.store.read_copy(key, range, at_ms).await
    }

    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        self.store.stat(key).await
    }

    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.store.list_copies(scope).await
    }

    async fn evict_copy(&self, key: &CopyKey, at_ms: i64) -> Result<bool, OffloadError> {
        self.evicts.fetch_add(1, Ordering::Relaxed);
        self.store.evict_copy(key, at_ms).await
    }

    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        self.store.clear_scope(scope).await
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
    let caps = EvictionLimits {
        max_count: Some(7),
        max_bytes: Some(u64::MAX),
        ..EvictionLimits::default()
    };
    let swept = sweep_copies(&store, &CopyScope::All, &caps, count)
        .await
        .unwrap();
    let gone = usize::try_from(count).unwrap() - 7;
    assert_eq!(swept.count_evicted_by(EvictedBy::Count), gone);
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
        .put_copy(&key("text"), text, CopyKind::Copy, 1)
        .await
        .unwrap_err();
    assert!(matches!(error, OffloadError::Storage { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "in the way");
}
