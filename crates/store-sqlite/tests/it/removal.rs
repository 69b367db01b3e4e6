//! What is removed is gone from the file, in steps, whatever interrupts them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};

use contexture_ir::{ContentHash, NodeId};
use contexture_store::{
    AppendRequest, EraseScope, NewConversation, RedactRequest, StateKey, StatePatch, Store,
    erase_all,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch_end, item, node, raw_item};
use rusqlite::Connection;

fn open(path: &Path) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

fn count(path: &Path, table: &str) -> i64 {
    let conn = Connection::open(path).unwrap();
    let sql = format!("SELECT count(*) FROM {table}");
    conn.query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// The bytes of the database and its log.
fn files(path: &Path) -> [Vec<u8>; 2] {
    ["", "-wal"].map(|ending| {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        std::fs::read(file).unwrap_or_default()
    })
}

/// Whether the files have these bytes.
fn holds(path: &Path, secret: &[u8]) -> bool {
    let files = files(path);
    let mut windows = files.iter().flat_map(|file| file.windows(secret.len()));
    windows.any(|window| window == secret)
}

const PIECE: usize = 24;

/// How many of these pieces the files have.
fn held(path: &Path, pieces: &BTreeSet<Vec<u8>>) -> usize {
    let files = files(path);
    let windows = files.iter().flat_map(|file| file.windows(PIECE));
    let found: BTreeSet<&[u8]> = windows.filter(|window| pieces.contains(*window)).collect();
    found.len()
}

/// A text of its own, longer with each number.
fn secret(n: usize) -> String {
    let words = (0..1 + n).map(|word| ContentHash::of(format!("{n} {word}").as_bytes()));
    words.map(|word| format!("quicksilver {word} ")).collect()
}

/// Pieces of the bytes that are stored for these nodes.
fn stored(path: &Path, nodes: &[NodeId]) -> BTreeSet<Vec<u8>> {
    let conn = Connection::open(path).unwrap();
    let mut pieces = BTreeSet::new();
    for node in nodes {
        let item: Vec<u8> = conn
            .query_row(
                "SELECT item FROM nodes WHERE node_id = ?",
                [node.as_bytes()],
                |row| row.get(0),
            )
            .unwrap();
        for end in [item.len(), item.len() / 2 + PIECE / 2] {
            let piece = item.get(end.saturating_sub(PIECE)..end);
            pieces.insert(piece.unwrap().to_vec());
        }
    }
    pieces
}

/// Among many nodes, so that pages were split and filled again; of every size.
#[tokio::test(flavor = "multi_thread")]
async fn redacted_bytes_are_in_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("redacted.db");
    let chat = Chat::start(open(&path)).await;
    let mut redacted = Vec::new();
    for n in 0..400 {
        let word = format!("n{n}");
        let said = match n % 5 {
            0 => secret(n),
            _ => "something else".repeat(n % 40),
        };
        if n % 5 == 0 {
            redacted.push(node(&word));
        }
        chat.append_to_tip("main", vec![raw_item(&word, &said)])
            .await
            .unwrap();
    }
    let value = "quicksilver ".repeat(1000).into_bytes();
    let mut request = AppendRequest::new(Chat::at_tip("main"), vec![item("last")], NOW);
    request.patch = StatePatch::put_entry(StateKey::new("k").unwrap(), 1, value.clone());
    request.blobs = vec![Arc::from(*b"a quicksilver blob")];
    let blobs = chat.append_request(request).await.unwrap().blobs;
    // Long items are stored compressed: what must go is what is stored.
    let stored = stored(&path, &redacted);
    assert_eq!(held(&path, &stored), stored.len());
    assert!(holds(&path, b"quicksilver"));
    let request = RedactRequest {
        nodes: redacted,
        values: vec![ContentHash::of(&value)],
        blobs,
        at_ms: NOW,
    };
    let redacted = chat
        .store
        .redact_content(&chat.owner, &chat.id, request)
        .await;
    assert_eq!(redacted.unwrap().nodes, 80);
    assert!(!holds(&path, b"quicksilver"), "without closing the store");
    assert_eq!(held(&path, &stored), 0);
    assert_eq!(chat.path_nodes(branch_end("main")).await.len(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_owner_is_in_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("erased.db");
    let store = open(&path);
    for n in 0..150 {
        let chat = Chat::start_as(Arc::clone(&store), "ada", &format!("c{n}")).await;
        let said = "quicksilver ".repeat(n);
        chat.append_to_tip("main", vec![raw_item("a", &said)])
            .await
            .unwrap();
    }
    let bob = Chat::start_as(Arc::clone(&store), "bob", "c0").await;
    bob.append_messages("main", &["a"]).await;
    let ada = "ada".parse().unwrap();
    let erased = erase_all(&*store, &ada, &EraseScope::Owner).await.unwrap();
    assert_eq!(erased.conversations, 150);
    assert!(!holds(&path, b"quicksilver"), "without closing the store");
    for (table, rows) in [
        ("conversations", 1),
        ("nodes", 1),
        ("segments", 1),
        ("events", 2),
        ("deletions", 0),
    ] {
        assert_eq!(count(&path, table), rows, "{table}");
    }
}

/// A conversation so large that its deletion takes many steps.
async fn large(path: &Path) -> Chat {
    let chat = Chat::start(open(path)).await;
    for n in 0..12 {
        let items = (0..500).map(|m| item(&format!("{n} {m}"))).collect();
        chat.append_to_tip("main", items).await.unwrap();
    }
    chat
}

/// Begins to delete, and is dropped when the first step is done.
async fn begin_to_delete(chat: &Chat) {
    let mut delete = Box::pin(chat.store.delete_conversation(&chat.owner, &chat.id));
    let mut waker = Context::from_waker(Waker::noop());
    while chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .is_ok()
    {
        assert!(delete.as_mut().poll(&mut waker).is_pending());
    }
}

/// From the first step on nobody sees it, and whoever dropped it need not come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_deletion_is_finished_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dropped.db");
    let chat = large(&path).await;
    begin_to_delete(&chat).await;
    let late = chat
        .append_to_tip("main", vec![item("late")])
        .await
        .unwrap_err();
    assert_eq!(late.kind(), "not_found");
    // The id is free as soon as the writer has been idle for long enough.
    let new = NewConversation::new(chat.id.clone(), NOW);
    loop {
        match chat
            .store
            .create_conversation(&chat.owner, new.clone())
            .await
        {
            Ok(_) => break,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        tokio::task::yield_now().await;
    }
    assert_eq!((count(&path, "nodes"), count(&path, "deletions")), (0, 0));
    chat.expect_path("main", &[]).await;
}

/// A process that died over a deletion leaves rows that nobody sees; the next one removes them.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_deletion_goes_on_when_the_database_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("interrupted.db");
    let chat = large(&path).await;
    let (owner, id) = (chat.owner.clone(), chat.id.clone());
    drop(chat);
    // As the first step leaves it.
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "INSERT INTO deletions SELECT no, owner, id FROM conversations;
         DELETE FROM conversations;",
    )
    .unwrap();
    drop(conn);
    let store = open(&path);
    let gone = store.load_conversation(&owner, &id).await.unwrap_err();
    assert_eq!(gone.kind(), "not_found");
    while count(&path, "deletions") > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((count(&path, "nodes"), count(&path, "events")), (0, 0));
}
