//! The contract as a table: each behaviour once, shown by every backend.

use bytes::Bytes;
use contexture_offload::{CopyKind, CopyScope, CopyStats, OffloadError, OffloadStore, PutOutcome};

use crate::support::{Backend, backends, conversation, held, key, key_of, owner, put};

const TEXT: &str = "first\nsecond\nthird\n";

async fn puts(store: &dyn OffloadStore, text: &str, holding: CopyKind, at_ms: i64) -> PutOutcome {
    let bytes = Bytes::from(text.to_owned());
    store
        .put_copy(&key(text), bytes, holding, at_ms)
        .await
        .unwrap()
}

async fn what_was_put_is_read_whole_and_in_part(Backend { store, .. }: &Backend) {
    let key = put(&**store, TEXT, 1_000).await;
    let read = async |range| store.read_copy(&key, range, 1_000).await.unwrap();
    assert_eq!(read(None).await, TEXT);
    assert_eq!(read(Some(6..12)).await, "second");
    assert_eq!(read(Some(13..1_000)).await, "third\n");
    assert_eq!(read(Some(500..1_000)).await, "");
    assert_eq!(read(Some(7..7)).await, "");
    let entry = store.stat(&key).await.unwrap();
    assert_eq!((entry.bytes, entry.copy_kind), (19, CopyKind::Copy));
}

async fn an_empty_text_is_a_text(Backend { store, .. }: &Backend) {
    let key = put(&**store, "", 1_000).await;
    assert_eq!(store.read_copy(&key, None, 1_000).await.unwrap(), "");
    assert_eq!(held(&**store).await, [key]);
}

async fn putting_again_changes_nothing(Backend { store, .. }: &Backend) {
    assert_eq!(
        puts(&**store, TEXT, CopyKind::Copy, 1_000).await,
        PutOutcome::New
    );
    let before = store.stat(&key(TEXT)).await.unwrap();
    assert_eq!(
        puts(&**store, TEXT, CopyKind::Copy, 9_000).await,
        PutOutcome::Known
    );
    let after = store.stat(&key(TEXT)).await.unwrap();
    assert_eq!(after.created_ms, before.created_ms);
    assert_eq!(held(&**store).await.len(), 1);
}

async fn what_was_removed_or_spoiled_is_put_right(Backend { store, .. }: &Backend) {
    let key = put(&**store, TEXT, 1_000).await;
    assert!(store.evict_copy(&key, 2_000).await.unwrap());
    assert_eq!(
        puts(&**store, TEXT, CopyKind::Copy, 3_000).await,
        PutOutcome::New
    );
    let spoiled = Bytes::from_static(b"FIRST\nsecond\nthird\n");
    store
        .put_copy(&key, spoiled, CopyKind::Copy, 4_000)
        .await
        .unwrap();
    assert_eq!(
        puts(&**store, TEXT, CopyKind::Copy, 5_000).await,
        PutOutcome::Repaired
    );
    assert_eq!(store.read_copy(&key, None, 6_000).await.unwrap(), TEXT);
}

async fn what_is_not_there_is_not_found(Backend { store, .. }: &Backend) {
    let absent = key("never put");
    let refused = [
        store.read_copy(&absent, None, 0).await.unwrap_err(),
        store.stat(&absent).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, OffloadError::NotFound { key } if key == absent));
        assert!(!error.is_retryable());
    }
    assert!(!store.evict_copy(&absent, 0).await.unwrap());
    assert_eq!(store.clear_scope(&CopyScope::All).await.unwrap(), 0);
}

async fn what_is_evicted_leaves_a_tombstone(Backend { store, .. }: &Backend) {
    for holding in [CopyKind::Copy, CopyKind::OnlyCopy] {
        puts(&**store, TEXT, holding, 1_000).await;
        let key = key(TEXT);
        assert!(store.evict_copy(&key, 2_000).await.unwrap());
        for error in [
            store.read_copy(&key, None, 3_000).await.unwrap_err(),
            store.stat(&key).await.unwrap_err(),
        ] {
            assert!(matches!(error, OffloadError::Evicted { .. }), "{error}");
        }
        assert!(held(&**store).await.is_empty());
        assert!(!store.evict_copy(&key, 3_000).await.unwrap());
        // Put again it is there again.
        assert_eq!(puts(&**store, TEXT, holding, 4_000).await, PutOutcome::New);
        assert_eq!(store.read_copy(&key, None, 5_000).await.unwrap(), TEXT);
        store.clear_scope(&CopyScope::All).await.unwrap();
    }
}

async fn what_is_held_only_here_stays_so(Backend { store, .. }: &Backend) {
    puts(&**store, TEXT, CopyKind::Copy, 1_000).await;
    puts(&**store, TEXT, CopyKind::OnlyCopy, 2_000).await;
    puts(&**store, TEXT, CopyKind::Copy, 3_000).await;
    let entries = store.list_copies(&CopyScope::All).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].copy_kind, CopyKind::OnlyCopy);
}

async fn one_owner_sees_nothing_of_another(Backend { store, .. }: &Backend) {
    for (name, chat) in [("ada", "c"), ("ada", "d"), ("eve", "c"), ("Ada", "c")] {
        let text = Bytes::from(format!("{name} {chat}"));
        let key = key_of(name, chat, TEXT);
        store
            .put_copy(&key, text, CopyKind::Copy, 1_000)
            .await
            .unwrap();
    }
    let read = store
        .read_copy(&key_of("eve", "c", TEXT), None, 1_000)
        .await;
    assert_eq!(read.unwrap(), "eve c");
    let (ada, eve) = (owner("ada"), owner("eve"));
    for (scope, count) in [
        (CopyScope::All, 4),
        (CopyScope::owner(&ada), 2),
        (CopyScope::conversation(&ada, &conversation("d")), 1),
        (CopyScope::conversation(&eve, &conversation("d")), 0),
    ] {
        let entries = store.list_copies(&scope).await.unwrap();
        assert_eq!(entries.len(), count);
        assert!(entries.iter().all(|entry| scope.contains(&entry.key)));
        assert!(entries.is_sorted_by_key(|entry| entry.key));
    }
    assert_eq!(store.clear_scope(&CopyScope::owner(&ada)).await.unwrap(), 2);
    assert_eq!(held(&**store).await.len(), 2);
}

async fn clearing_removes_tombstones_too(Backend { store, .. }: &Backend) {
    puts(&**store, TEXT, CopyKind::OnlyCopy, 1_000).await;
    store.evict_copy(&key(TEXT), 1_000).await.unwrap();
    assert_eq!(store.clear_scope(&CopyScope::All).await.unwrap(), 0);
    let error = store.stat(&key(TEXT)).await.unwrap_err();
    assert!(matches!(error, OffloadError::NotFound { .. }), "{error}");
}

async fn counting_after_a_restart_finds_what_is_there(Backend { store, .. }: &Backend) {
    put(&**store, TEXT, 1_000).await;
    puts(&**store, "kept only here", CopyKind::OnlyCopy, 2_000).await;
    let reconciled = store.reconcile(10_000).await.unwrap();
    assert_eq!((reconciled.unfinished, reconciled.foreign), (0, 0));
    let CopyStats {
        copies,
        only,
        bytes,
        oldest_ms,
    } = reconciled.stats;
    assert_eq!((copies, only, bytes), (1, 1, 33));
    let entries = store.list_copies(&CopyScope::All).await.unwrap();
    assert_eq!(
        oldest_ms,
        entries.iter().map(|entry| entry.created_ms).min()
    );
    assert_eq!(store.reconcile(10_000).await.unwrap(), reconciled);
}

async fn times_are_those_that_were_told(backend: &Backend) {
    let Backend { store, .. } = backend;
    let key = put(&**store, TEXT, 1_000).await;
    store.read_copy(&key, None, 7_000).await.unwrap();
    store.read_copy(&key, None, 5_000).await.unwrap();
    let entry = store.stat(&key).await.unwrap();
    if backend.keeps_times {
        assert_eq!((entry.created_ms, entry.used_ms), (1_000, 7_000));
    } else {
        // Those of the object instead.
        assert!(entry.created_ms > 1_000_000 && entry.used_ms == entry.created_ms);
    }
}

/// Runs a behaviour on every backend.
macro_rules! table {
    ($($behaviour:ident)*) => {
        mod every_backend {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    for backend in super::backends() {
                        eprintln!("{}", backend.name);
                        super::$behaviour(&backend).await;
                    }
                }
            )*
        }
    };
}

table! {
    what_was_put_is_read_whole_and_in_part
    an_empty_text_is_a_text
    putting_again_changes_nothing
    what_was_removed_or_spoiled_is_put_right
    what_is_not_there_is_not_found
    what_is_evicted_leaves_a_tombstone
    what_is_held_only_here_stays_so
    one_owner_sees_nothing_of_another
    clearing_removes_tombstones_too
    counting_after_a_restart_finds_what_is_there
    times_are_those_that_were_told
}
