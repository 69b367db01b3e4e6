//! The writer's queue.

use std::sync::Arc;
use std::time::Duration;

use contexture_store::Error;
use contexture_store_sqlite::{SqliteOptions, SqliteStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch_end, raw_item};
use rusqlite::Connection;

async fn chat(options: SqliteOptions) -> (tempfile::TempDir, Connection, Chat) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queue.db");
    let store = SqliteStore::open_with(&path, options).unwrap();
    let chat = Chat::start(Arc::new(store)).await;
    (directory, Connection::open(&path).unwrap(), chat)
}

/// While another process holds the lock, calls wait up to the bound and are refused beyond it.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_and_recovers() {
    let options = SqliteOptions {
        queue_bytes: 1 << 20,
        ..SqliteOptions::default()
    };
    let (_directory, other, chat) = chat(options).await;
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let text = "x".repeat(100_000);
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let (chat, item) = (chat.clone(), raw_item(&n.to_string(), &text));
            tokio::spawn(async move { chat.append_to_tip("main", vec![item]).await })
        })
        .collect();
    while tasks.iter().filter(|task| task.is_finished()).count() < 10 {
        tokio::task::yield_now().await;
    }
    other.execute_batch("COMMIT").unwrap();
    let (mut stored, mut refused) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => stored += 1,
            Err(error @ Error::Busy { .. }) => {
                assert!(error.is_retryable());
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(stored + refused, 20);
    assert_eq!(chat.path_nodes(branch_end("main")).await.len(), stored);
    chat.append_messages("main", &["after"]).await;
}

/// A call that could never fit the queue still goes when nothing else waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_larger_than_the_queue_goes_alone() {
    let options = SqliteOptions {
        queue_bytes: 1000,
        ..SqliteOptions::default()
    };
    let (_directory, _other, chat) = chat(options).await;
    let text = "x".repeat(100_000);
    chat.append_to_tip("main", vec![raw_item("a", &text)])
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_that_writes_for_too_long_is_busy() {
    let options = SqliteOptions {
        busy_timeout: Duration::ZERO,
        ..SqliteOptions::default()
    };
    let (_directory, other, chat) = chat(options).await;
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = chat
        .append_to_tip("main", vec![raw_item("a", "{}")])
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    // Readers do not wait.
    chat.expect_path("main", &[]).await;
    other.execute_batch("COMMIT").unwrap();
    chat.append_to_tip("main", vec![raw_item("a", "{}")])
        .await
        .unwrap();
}

/// Calls handed over before the store is dropped are carried out, even if nobody waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_store_finishes_what_was_begun() {
    let (directory, other, chat) = chat(SqliteOptions::default()).await;
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let task = {
        let chat = chat.clone();
        tokio::spawn(async move { chat.append_to_tip("main", vec![raw_item("a", "{}")]).await })
    };
    let (owner, id) = (chat.owner.clone(), chat.id.clone());
    drop(chat);
    other.execute_batch("COMMIT").unwrap();
    task.await.unwrap().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path().join("queue.db")).unwrap());
    let chat = Chat { store, owner, id };
    chat.expect_path("main", &["a"]).await;
}
