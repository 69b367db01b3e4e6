//! Opening files that are not what they should be, and running out of space.

use std::path::Path;
use std::sync::Arc;

use contexture_store::{AppendRequest, Error, StorageFault};
use contexture_store_sqlite::{FORMAT, SqliteOptions, SqliteStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch_end, item, node, raw_item};
use rusqlite::Connection;

fn expect_fault(path: &Path, wanted: StorageFault) {
    match SqliteStore::open(path).unwrap_err() {
        Error::Storage {
            path: named, fault, ..
        } => {
            assert_eq!(named, path);
            assert_eq!(fault, wanted, "{}", path.display());
        }
        error => panic!("{}: {error}", path.display()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a b ü.db");
    let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    chat.append_messages("main", &["a", "b"]).await;
    let (owner, id) = (chat.owner.clone(), chat.id.clone());
    drop(chat);
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    assert_eq!(store.path(), path);
    let chat = Chat { store, owner, id };
    chat.expect_path("main", &["a", "b"]).await;
    chat.append_messages("main", &["c"]).await;
    chat.expect_path("main", &["a", "b", "c"]).await;
}

#[test]
fn files_that_are_no_databases_of_ours() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    expect_fault(directory.path(), StorageFault::CannotOpen);
    expect_fault(&at("missing/contexture.db"), StorageFault::CannotOpen);
    std::fs::write(at("text"), "Once upon a time ".repeat(100)).unwrap();
    expect_fault(&at("text"), StorageFault::NotADatabase);
    let other = Connection::open(at("other")).unwrap();
    other
        .execute_batch("CREATE TABLE notes (text); PRAGMA user_version = 3")
        .unwrap();
    expect_fault(&at("other"), StorageFault::NotADatabase);
    let tagged = Connection::open(at("tagged")).unwrap();
    tagged.execute_batch("PRAGMA application_id = 7").unwrap();
    expect_fault(&at("tagged"), StorageFault::NotADatabase);
    // None of them was touched.
    assert!(
        other
            .query_row("SELECT count(*) FROM notes", [], |_| Ok(()))
            .is_ok()
    );
    let tables: i64 = tagged
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 0);
}

/// The one file system that is read-only even for the superuser.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_written() {
    expect_fault(Path::new("/proc/contexture.db"), StorageFault::CannotOpen);
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("newer.db");
    drop(SqliteStore::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    let newer = FORMAT + 1;
    conn.pragma_update(None, "user_version", newer).unwrap();
    // Newer, but this version may still write it.
    drop(SqliteStore::open(&path).unwrap());
    conn.execute("UPDATE format SET min_writer = ?", [newer])
        .unwrap();
    match SqliteStore::open(&path).unwrap_err() {
        Error::Newer {
            path: named,
            found,
            supported,
        } => {
            assert_eq!((named, found, supported), (path.clone(), newer, FORMAT));
        }
        error => panic!("{error}"),
    }
    // Who may read counts too, whatever the version says.
    conn.execute("UPDATE format SET min_writer = 1, min_reader = ?", [newer])
        .unwrap();
    conn.pragma_update(None, "user_version", FORMAT).unwrap();
    assert!(matches!(
        SqliteStore::open(&path).unwrap_err(),
        Error::Newer { .. }
    ));
    conn.pragma_update(None, "user_version", newer).unwrap();
    // A format so new that it does not even say who may write it.
    conn.execute_batch("DROP TABLE format").unwrap();
    assert!(matches!(
        SqliteStore::open(&path).unwrap_err(),
        Error::Newer { .. }
    ));
}

#[test]
fn a_migration_that_was_cut_off_is_done_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.db");
    {
        let mut conn = Connection::open(&path).unwrap();
        let tx = conn.transaction().unwrap();
        tx.execute_batch("CREATE TABLE format (min_reader, min_writer)")
            .unwrap();
        drop(tx);
    }
    drop(SqliteStore::open(&path).unwrap());
    drop(SqliteStore::open(&path).unwrap());
}

#[test]
fn several_openings_at_once_migrate_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("race.db");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| drop(SqliteStore::open(&path).unwrap()));
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_an_error_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.db");
    let small = SqliteOptions {
        max_bytes: Some(600_000),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open_with(&path, small).unwrap();
    let chat = Chat::start(Arc::new(store)).await;
    let big = |n: usize| raw_item(&format!("node {n}"), &format!("{n}").repeat(10_000));
    let mut stored = 0;
    let error = loop {
        match chat
            .append_to_tip("main", vec![item(&format!("small {stored}")), big(stored)])
            .await
        {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1000, "the limit does not bite");
    };
    match &error {
        Error::Storage { fault, .. } => assert_eq!(*fault, StorageFault::Full, "{error}"),
        error => panic!("{error}"),
    }
    assert!(stored > 3);
    // Reads go on, and nothing of the failed append is there.
    assert_eq!(chat.path_nodes(branch_end("main")).await.len(), 2 * stored);
    let (owner, id) = (chat.owner.clone(), chat.id.clone());
    drop(chat);
    // With space again the same append succeeds.
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    let chat = Chat { store, owner, id };
    let items = vec![item(&format!("small {stored}")), big(stored)];
    let head = AppendRequest::new(
        Chat::at_head("main", Some(&format!("node {}", stored - 1))),
        items,
        NOW,
    );
    assert!(!chat.append_request(head).await.unwrap().replayed);
    let path = chat.path_nodes(branch_end("main")).await;
    assert_eq!(path.last().unwrap().id, node(&format!("node {stored}")));
    assert_eq!(path.len(), 2 * stored + 2);
}
