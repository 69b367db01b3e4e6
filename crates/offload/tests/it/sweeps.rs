//! What a sweep takes, and what it leaves.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use contexture_offload::{
    CopyKey, CopyKind, CopyMetadata, CopyScope, Evictable, EvictedBy, EvictionLimits,
    MemoryOffloadStore, OffloadError, OffloadStore, PutOutcome, Reconciled, SweepReport,
    sweep_copies, sweep_copies_with,
};

use crate::support::{backends, held, key, put};

/// A text of ten bytes for each time, put at that time.
async fn filled(store: &dyn OffloadStore, times: Range<i64>) -> Vec<CopyKey> {
    let mut keys = Vec::new();
    for time in times {
        keys.push(put(store, &format!("{time:010}"), time).await);
    }
    keys
}

fn evicted(swept: &SweepReport) -> Vec<CopyKey> {
    swept.evicted.iter().map(|gone| gone.entry.key).collect()
}

#[tokio::test]
async fn nothing_goes_without_a_cap() {
    for backend in backends() {
        filled(&*backend.store, 0..5).await;
        let swept = sweep_copies(
            &*backend.store,
            &CopyScope::All,
            &EvictionLimits::default(),
            i64::MAX,
        )
        .await
        .unwrap();
        assert_eq!(
            (swept.evicted.len(), swept.remaining, swept.remaining_bytes),
            (0, 5, 50)
        );
        assert_eq!(held(&*backend.store).await.len(), 5);
    }
}

#[tokio::test]
async fn caps_hold_on_every_backend() {
    for backend in backends() {
        let store = &*backend.store;
        filled(store, 0..9).await;
        let count = EvictionLimits {
            max_count: Some(6),
            ..EvictionLimits::default()
        };
        let swept = sweep_copies(store, &CopyScope::All, &count, 10)
            .await
            .unwrap();
        assert_eq!(
            (swept.count_evicted_by(EvictedBy::Count), swept.remaining),
            (3, 6),
            "{}",
            backend.name
        );
        let bytes = EvictionLimits {
            max_bytes: Some(25),
            ..count
        };
        let swept = sweep_copies(store, &CopyScope::All, &bytes, 10)
            .await
            .unwrap();
        assert_eq!(
            (
                swept.count_evicted_by(EvictedBy::Bytes),
                swept.evicted_bytes()
            ),
            (4, 40)
        );
        let newest = store.list_copies(&CopyScope::All).await.unwrap();
        let newest = newest.iter().map(|entry| entry.created_ms).max().unwrap();
        let age = EvictionLimits {
            max_age: Some(Duration::ZERO),
            ..EvictionLimits::default()
        };
        let swept = sweep_copies(store, &CopyScope::All, &age, newest + 1)
            .await
            .unwrap();
        assert_eq!(swept.count_evicted_by(EvictedBy::Age), 2);
        assert!(held(store).await.is_empty());
    }
}

#[tokio::test]
async fn an_age_is_over_only_beyond_it() {
    let store = MemoryOffloadStore::new();
    let keys = filled(&store, 0..3).await;
    let caps = EvictionLimits {
        max_age: Some(Duration::from_millis(100)),
        ..EvictionLimits::default()
    };
    assert_eq!(
        sweep_copies(&store, &CopyScope::All, &caps, 100)
            .await
            .unwrap()
            .evicted
            .len(),
        0
    );
    let swept = sweep_copies(&store, &CopyScope::All, &caps, 102)
        .await
        .unwrap();
    assert_eq!(evicted(&swept), keys[..2]);
    // A clock that went back ages nothing.
    assert_eq!(
        sweep_copies(&store, &CopyScope::All, &caps, i64::MIN)
            .await
            .unwrap()
            .evicted
            .len(),
        0
    );
}

#[tokio::test]
async fn what_was_used_longest_ago_goes_first() {
    let store = MemoryOffloadStore::new();
    let keys = filled(&store, 0..4).await;
    store.read_copy(&keys[0], None, 50).await.unwrap();
    let caps = EvictionLimits {
        max_count: Some(2),
        ..EvictionLimits::default()
    };
    let swept = sweep_copies(&store, &CopyScope::All, &caps, 60)
        .await
        .unwrap();
    assert_eq!(evicted(&swept), [keys[1], keys[2]]);
    // Each call has caps of its own: nothing is remembered.
    let wider = EvictionLimits {
        max_count: None,
        ..caps
    };
    assert_eq!(
        sweep_copies(&store, &CopyScope::All, &wider, 60)
            .await
            .unwrap()
            .evicted
            .len(),
        0
    );
    let none = EvictionLimits {
        max_count: Some(0),
        ..caps
    };
    assert_eq!(
        sweep_copies(&store, &CopyScope::All, &none, 60)
            .await
            .unwrap()
            .evicted
            .len(),
        2
    );
}

#[tokio::test]
async fn what_is_held_only_here_stays_unless_asked_for() {
    for backend in backends() {
        let store = &*backend.store;
        filled(store, 0..2).await;
        let only = Bytes::from_static(b"the only one");
        let key = key("the only one");
        store
            .put_copy(&key, only, CopyKind::OnlyCopy, 0)
            .await
            .unwrap();
        let caps = EvictionLimits {
            max_count: Some(0),
            ..EvictionLimits::default()
        };
        let swept = sweep_copies(store, &CopyScope::All, &caps, 10)
            .await
            .unwrap();
        assert_eq!((swept.evicted.len(), swept.remaining), (2, 0));
        assert_eq!(held(store).await, [key]);
        let caps = EvictionLimits {
            evict: Evictable::All,
            ..caps
        };
        let swept = sweep_copies(store, &CopyScope::All, &caps, 10)
            .await
            .unwrap();
        assert_eq!(evicted(&swept), [key]);
        let error = store.read_copy(&key, None, 10).await.unwrap_err();
        assert!(matches!(error, OffloadError::Evicted { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_hook_hears_of_each_text_that_is_gone() {
    let store = MemoryOffloadStore::new();
    filled(&store, 0..5).await;
    let caps = EvictionLimits {
        max_count: Some(3),
        ..EvictionLimits::default()
    };
    let mut heard = Vec::new();
    let hook = |gone: &contexture_offload::Evicted| heard.push(gone.entry.key);
    let swept = sweep_copies_with(&store, &CopyScope::All, &caps, 10, hook)
        .await
        .unwrap();
    assert_eq!((heard.len(), heard), (2, evicted(&swept)));
}

#[tokio::test]
async fn a_sweep_keeps_to_its_scope() {
    let store = MemoryOffloadStore::new();
    filled(&store, 0..3).await;
    let eve = CopyScope::owner(&crate::support::owner("eve"));
    let caps = EvictionLimits {
        max_count: Some(0),
        ..EvictionLimits::default()
    };
    assert_eq!(
        sweep_copies(&store, &eve, &caps, 10)
            .await
            .unwrap()
            .evicted
            .len(),
        0
    );
    assert_eq!(held(&store).await.len(), 3);
}

/// A store that cannot let go of one text.
#[derive(Debug)]
struct Sticky(MemoryOffloadStore, CopyKey);

#[async_trait]
impl OffloadStore for Sticky {
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        self.0.put_copy(key, text, holding, at_ms).await
    }

    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        self.0.read_copy(key, range, at_ms).await
    }

    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        self.0.stat(key).await
    }

    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        self.0.list_copies(scope).await
    }

    async fn evict_copy(&self, key: &CopyKey, at_ms: i64) -> Result<bool, OffloadError> {
        if *key == self.1 {
            return Err(OffloadError::storage_error("remove", key, "it is held"));
        }
        self.0.evict_copy(key, at_ms).await
    }

    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        self.0.clear_scope(scope).await
    }

    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        self.0.reconcile(at_ms).await
    }
}

#[tokio::test]
async fn what_cannot_go_is_reported_and_another_goes_instead() {
    let store = MemoryOffloadStore::new();
    let keys = filled(&store, 0..4).await;
    let store = Sticky(store, keys[0]);
    let caps = EvictionLimits {
        max_count: Some(2),
        ..EvictionLimits::default()
    };
    let swept = sweep_copies(&store, &CopyScope::All, &caps, 10)
        .await
        .unwrap();
    assert_eq!(evicted(&swept), [keys[1], keys[2]]);
    assert_eq!((swept.failed.len(), swept.remaining), (1, 2));
    assert_eq!(swept.failed[0].entry.key, keys[0]);
    assert!(swept.failed[0].error.is_retryable());
}
