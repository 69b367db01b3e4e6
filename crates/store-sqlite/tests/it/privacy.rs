//! Files that only their owner may read, and databases that cannot be written.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture_ir::{Owner, ProcessId};
use contexture_store::{
    Error, ListConversations, SearchRequest, SearchScope, StorageFault, Store as _,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::item;
use rusqlite::Connection;

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// All files and folders below a folder.
fn everything_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(everything_in(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}

/// Whatever the store creates, only its user may read, and what it finds keeps its mode.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_is_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("private.db");
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    store
        .processes()
        .unwrap()
        .beat(ProcessId::from_bytes([7; 16]))
        .await
        .unwrap();
    let chat = Chat::start(Arc::<SqliteStore>::clone(&store)).await;
    chat.append_messages("main", &["a"]).await;
    let copy = directory.path().join("copy.db");
    store.maintenance().unwrap().back_up(&copy).await.unwrap();
    let found = everything_in(directory.path());
    for file in [
        "private.db",
        "private.db-wal",
        "private.db-shm",
        "private.db-turn",
        "copy.db",
    ] {
        assert!(
            found.contains(&directory.path().join(file)),
            "{file} in {found:?}"
        );
    }
    assert_eq!(found.len(), 7, "and a folder with a lock: {found:?}");
    for path in &found {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode_of(path), wanted, "{}", path.display());
    }
    drop(chat);
    drop(store);
    set_mode(&path, 0o640);
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(mode_of(&path), 0o640);
}

/// What a backup leaves that was killed: its part, and the lock that nobody holds any more.
fn leave_part(to: &Path, digits: &str) -> [PathBuf; 2] {
    let named = |end: &str| PathBuf::from(format!("{}.{digits}{end}", to.display()));
    let left = [named(".part"), named(".part-lock")];
    for path in &left {
        std::fs::write(path, "half").unwrap();
    }
    left
}

/// A killed backup does not stand in the way of the next one, which removes what it left. One that
/// is being made is left alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backup_is_cleared_away() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("kept.db")).unwrap();
    let copies = directory.path().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let to = copies.join("bk.db");
    let stale = leave_part(&to, "0123456789abcdef");
    let [part, lock] = leave_part(&to, "fedcba9876543210");
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    // The name that an older version gave its part.
    let older = copies.join("bk.db.part");
    std::fs::write(&older, "half").unwrap();
    store.maintenance().unwrap().back_up(&to).await.unwrap();
    assert_eq!(everything_in(&copies), [to.clone(), part, lock, older]);
    assert!(!stale.iter().any(|path| path.exists()));
    drop(SqliteStore::open(&to).unwrap());
}

/// A store of the file that cannot be written, with everything that reads.
async fn expect_readable(path: &Path, owner: &Owner) {
    let store = SqliteStore::open_read_only(path, SqliteOptions::default()).unwrap();
    let list = ListConversations::default();
    let page = store.list_conversations(owner, list).await.unwrap();
    let chat = Chat {
        store: Arc::new(store),
        owner: owner.clone(),
        id: page.conversations[0].id.clone(),
    };
    chat.expect_path("main", &["a", "b"]).await;
    let search = chat.store.search().unwrap();
    let request = SearchRequest::new("a", SearchScope::Owner);
    search.search_nodes(owner, request).await.unwrap();
    let upkeep = chat.store.maintenance().unwrap();
    upkeep.read_statistics(owner, &chat.id).await.unwrap();
    assert_eq!(upkeep.verify_medium().await.unwrap(), [""; 0]);
    let refused = chat
        .append_to_tip("main", vec![item("c")])
        .await
        .unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Storage {
                fault: StorageFault::ReadOnly,
                ..
            }
        ),
        "{refused}"
    );
}

/// A database that nobody may write can be read: closed with nothing beside it, or with its log, and
/// while another process writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_written_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("a?b #c%20");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("kept.db");
    let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    chat.append_messages("main", &["a", "b"]).await;
    let owner = chat.owner.clone();
    // Beside a process that has it open, and one that writes.
    expect_readable(&path, &owner).await;
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    expect_readable(&path, &owner).await;
    drop(writer);
    drop(chat);
    let before = everything_in(&folder);
    set_mode(&path, 0o400);
    set_mode(&folder, 0o500);
    expect_readable(&path, &owner).await;
    // The superuser may write everywhere.
    let is_superuser = std::fs::File::create(folder.join("probe")).is_ok();
    set_mode(&folder, 0o700);
    assert!(is_superuser || everything_in(&folder) == before);
    // An older format must be written first.
    set_mode(&path, 0o600);
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 1).unwrap();
    conn.execute("UPDATE format SET min_reader = 1, min_writer = 1", [])
        .unwrap();
    drop(conn);
    let options = SqliteOptions::default();
    let older = SqliteStore::open_read_only(&path, options.clone()).unwrap_err();
    assert!(matches!(older, Error::Older { found: 1, .. }), "{older}");
    let missing = folder.join("missing.db");
    assert!(SqliteStore::open_read_only(&missing, options).is_err());
    assert!(!missing.exists());
}

/// Opening, reading and closing wait for no other process, whatever it holds; a write waits once.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_write_waits_and_only_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("waits.db");
    let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    chat.append_messages("main", &["a", "b"]).await;
    let (owner, id) = (chat.owner.clone(), chat.id.clone());
    drop(chat);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let open = |patience: Duration| {
        let options = SqliteOptions {
            busy_timeout: patience,
            ..SqliteOptions::default()
        };
        Chat {
            store: Arc::new(SqliteStore::open_with(&path, options).unwrap()),
            owner: owner.clone(),
            id: id.clone(),
        }
    };
    // So long that a test that waits for it does not end.
    let patient = open(Duration::from_secs(100_000));
    patient.expect_path("main", &["a", "b"]).await;
    drop(patient);
    // Order instead of times: who waited three times would come after one whose patience is three times as long.
    let patience = Duration::from_millis(500);
    let (once, thrice) = (open(patience), open(3 * patience));
    let refused = tokio::select! {
        refused = once.append_to_tip("main", vec![item("c")]) => refused.unwrap_err(),
        _ = thrice.append_to_tip("main", vec![item("d")]) => panic!("a write waits more than once"),
    };
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    once.expect_path("main", &["a", "b"]).await;
    drop(other);
}
