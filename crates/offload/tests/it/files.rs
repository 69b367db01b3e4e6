//! Files: what names, links, crashes and other programs may do to them.

use std::fs;
use std::path::{Path, PathBuf};

use contexture_offload::{
    CopyKey, CopyKind, CopyScope, EvictionLimits, FsOffloadStore, OffloadError, OffloadStore,
    PutOutcome, sweep_copies,
};
use tempfile::{TempDir, tempdir};

use crate::support::{held, key, put};

const TEXT: &str = "one\ntwo\n";
const HOUR: i64 = 3_600_000;

fn place() -> (TempDir, FsOffloadStore) {
    let place = tempdir().unwrap();
    let store = FsOffloadStore::new(place.path().join("offload"));
    (place, store)
}

fn path(store: &FsOffloadStore, key: &CopyKey) -> PathBuf {
    store.copy_path(key, CopyKind::Copy)
}

/// Every file below a folder.
fn files(place: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for child in fs::read_dir(folder).unwrap() {
            let child = child.unwrap();
            if child.file_type().unwrap().is_dir() {
                folders.push(child.path());
            } else {
                files.push(child.path());
            }
        }
    }
    files
}

#[tokio::test]
async fn nothing_is_made_before_something_is_put() {
    let (place, store) = place();
    assert!(store.list_copies(&CopyScope::All).await.unwrap().is_empty());
    store.reconcile(0).await.unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_text_is_one_file_with_a_name_of_digits() {
    let (place, store) = place();
    let key = put(&store, TEXT, 1_000).await;
    assert_eq!(files(place.path()), [path(&store, &key)]);
    assert_eq!(fs::read_to_string(path(&store, &key)).unwrap(), TEXT);
    let below = path(&store, &key);
    let below = below.strip_prefix(store.root()).unwrap().to_str().unwrap();
    assert!(!below.contains("ada"), "{below}");
    assert!(
        below
            .chars()
            .all(|c| c.is_ascii_hexdigit() || "/.txt".contains(c))
    );
}

#[tokio::test]
async fn a_removed_or_spoiled_file_is_written_again() {
    let (_place, store) = place();
    let key = put(&store, TEXT, 1_000).await;
    let text = || bytes::Bytes::from_static(TEXT.as_bytes());
    fs::remove_file(path(&store, &key)).unwrap();
    let error = store.read_copy(&key, None, 1_000).await.unwrap_err();
    assert!(matches!(error, OffloadError::NotFound { .. }), "{error}");
    assert_eq!(
        store
            .put_copy(&key, text(), CopyKind::Copy, 2_000)
            .await
            .unwrap(),
        PutOutcome::New
    );
    for spoiled in ["", "one\nTWO\n", "one\ntwo\nthree\n"] {
        fs::write(path(&store, &key), spoiled).unwrap();
        let put = store
            .put_copy(&key, text(), CopyKind::Copy, 3_000)
            .await
            .unwrap();
        assert_eq!(put, PutOutcome::Repaired, "{spoiled:?}");
        assert_eq!(fs::read_to_string(path(&store, &key)).unwrap(), TEXT);
    }
}

#[tokio::test]
async fn ages_survive_a_restart() {
    let (_place, store) = place();
    let old = put(&store, "of 1970", 1_000).await;
    let new = put(&store, "of now", 10 * HOUR).await;
    let again = FsOffloadStore::new(store.root());
    assert_eq!(
        again.reconcile(10 * HOUR).await.unwrap().stats.oldest_ms,
        Some(1_000)
    );
    let caps = EvictionLimits {
        max_age: Some(std::time::Duration::from_secs(3_600)),
        ..EvictionLimits::default()
    };
    let swept = sweep_copies(&again, &CopyScope::All, &caps, 10 * HOUR)
        .await
        .unwrap();
    assert_eq!(swept.evicted.len(), 1);
    assert_eq!(swept.evicted[0].entry.key, old);
    assert_eq!(held(&again).await, [new]);
}

#[tokio::test]
async fn what_is_not_ours_is_neither_listed_nor_removed() {
    let (place, store) = place();
    let key = put(&store, TEXT, 1_000).await;
    let folder = path(&store, &key).parent().unwrap().to_owned();
    let name = path(&store, &key)
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let foreign = [
        place.path().join("secret.txt"),
        store.root().join("secret.txt"),
        folder.join("secret.txt"),
        folder.join(format!("{name}.bak")),
        folder.join("vfs_1700000000000_0123456789abcdef.txt"),
        folder.parent().unwrap().join(&name),
    ];
    for file in &foreign {
        fs::write(file, "secret").unwrap();
    }
    assert_eq!(held(&store).await, [key]);
    let reconciled = store.reconcile(i64::MAX).await.unwrap();
    assert_eq!((reconciled.foreign, reconciled.stats.copies), (5, 1));
    let none = EvictionLimits {
        max_count: Some(0),
        ..EvictionLimits::default()
    };
    assert_eq!(
        sweep_copies(&store, &CopyScope::All, &none, 0)
            .await
            .unwrap()
            .evicted
            .len(),
        1
    );
    store.clear_scope(&CopyScope::All).await.unwrap();
    for file in &foreign {
        assert_eq!(
            fs::read_to_string(file).unwrap(),
            "secret",
            "{}",
            file.display()
        );
    }
}

#[tokio::test]
async fn an_empty_store_leaves_no_folders() {
    let (place, store) = place();
    put(&store, TEXT, 1_000).await;
    assert_eq!(store.clear_scope(&CopyScope::All).await.unwrap(), 1);
    assert_eq!(
        fs::read_dir(place.path().join("offload")).unwrap().count(),
        0
    );
}

#[tokio::test]
async fn what_a_crash_left_unfinished_is_removed_after_an_hour() {
    let (_place, store) = place();
    let key = put(&store, TEXT, 1_000).await;
    let unfinished = path(&store, &key).with_file_name(".part-x1y2z3");
    fs::write(&unfinished, "half of").unwrap();
    let written = fs::metadata(&unfinished).unwrap().modified().unwrap();
    let written = written
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let written = i64::try_from(written).unwrap();
    assert_eq!(held(&store).await, [key]);
    let early = store.reconcile(written + HOUR - 1).await.unwrap();
    assert_eq!((early.unfinished, early.foreign), (0, 0));
    assert_eq!(store.reconcile(written + HOUR).await.unwrap().unfinished, 1);
    assert!(!unfinished.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let (place, store) = place();
    let secret = place.path().join("secret.txt");
    fs::write(&secret, "secret").unwrap();
    let key = put(&store, TEXT, 1_000).await;
    let text = || bytes::Bytes::from_static(TEXT.as_bytes());
    let refused = async || {
        for error in [
            store.read_copy(&key, None, 0).await.unwrap_err(),
            store.stat(&key).await.unwrap_err(),
            store
                .put_copy(&key, text(), CopyKind::Copy, 0)
                .await
                .unwrap_err(),
            store.evict_copy(&key, 0).await.unwrap_err(),
        ] {
            assert!(matches!(error, OffloadError::Foreign { .. }), "{error}");
            assert!(
                error.to_string().contains("a symbolic link, expected"),
                "{error}"
            );
        }
        assert!(held(&store).await.is_empty());
    };
    // In the place of a text,
    fs::remove_file(path(&store, &key)).unwrap();
    symlink(&secret, path(&store, &key)).unwrap();
    refused().await;
    // of a conversation's folder,
    let folder = path(&store, &key).parent().unwrap().to_owned();
    fs::remove_dir_all(&folder).unwrap();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let name = path(&store, &key).file_name().unwrap().to_owned();
    fs::write(elsewhere.join(name), "secret").unwrap();
    symlink(&elsewhere, &folder).unwrap();
    refused().await;
    // of an owner's.
    let owner = folder.parent().unwrap().to_owned();
    fs::remove_dir_all(&owner).unwrap();
    symlink(&elsewhere, &owner).unwrap();
    refused().await;
    store.clear_scope(&CopyScope::All).await.unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(files(&elsewhere).len(), 1);
}

#[tokio::test]
async fn writers_side_by_side_leave_one_whole_text() {
    let (place, store) = place();
    let text = TEXT.repeat(10_000);
    let writers = (0..8).map(|writer| {
        let (store, text) = (store.clone(), text.clone());
        tokio::spawn(async move { put(&store, &text, writer).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        assert_eq!(writer.await.unwrap(), key(&text));
    }
    assert_eq!(store.read_copy(&key(&text), None, 0).await.unwrap(), text);
    assert_eq!(files(place.path()).len(), 1);
}
