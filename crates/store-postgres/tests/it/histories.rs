//! Histories of clients of two stores on one database, whose sessions are ended, show no anomaly.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_store_testkit::history::{HistoryClient, HistoryLog, check_history, read_history};
use contexture_store_testkit::{Chat, test_seed};
use tokio::sync::Semaphore;

use crate::faults::terminate;
use crate::server::Database;

/// Clients of each of the two stores.
const CLIENTS: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn histories_with_ended_sessions_are_correct() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let operations = if soak { 3_000 } else { 30 };
    let mut random = fastrand::Rng::with_seed(test_seed());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let log = Arc::new(HistoryLog::open(&file));
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let done = Arc::new(Semaphore::new(0));
    let mut clients = Vec::new();
    for server in 0..2 {
        let store = database.store().await;
        for number in 0..CLIENTS {
            let chat = Chat {
                store: Arc::clone(&store),
                ..chat.clone()
            };
            let name = format!("s{server}c{number}");
            let mut client = HistoryClient::new(chat, Arc::clone(&log), name);
            let mut random = random.fork();
            let done = Arc::clone(&done);
            clients.push(tokio::spawn(async move {
                for _ in 0..operations {
                    client.run_operation(random.u64(..)).await;
                    done.add_permits(1);
                }
            }));
        }
    }
    let ended = end_sessions(&database, &done, operations * CLIENTS * 2, &mut random).await;
    for client in clients {
        client.await.unwrap();
    }
    let checked = check_history(&read_history(&file), &chat.path_words().await);
    println!(
        "{} operations, {ended} sessions ended: {} appends acknowledged, {} operations refused, {} of unknown outcome",
        checked.operations, checked.acknowledged, checked.refused, checked.unknown
    );
    assert_eq!(checked.anomalies, BTreeSet::new());
    assert!(ended > 0 && checked.acknowledged as u64 > operations);
    drop(chat);
    database.drop().await;
}

/// Ends all sessions whenever some more operations are done, in the midst of others, until all are done.
async fn end_sessions(
    database: &Database,
    done: &Semaphore,
    operations: u64,
    random: &mut fastrand::Rng,
) -> u64 {
    let client = database.client().await;
    let (mut seen, mut ended) = (0, 0);
    loop {
        let more = random.u64(1..=40);
        seen += more;
        if seen > operations {
            return ended;
        }
        let permits = u32::try_from(more).unwrap();
        done.acquire_many(permits).await.unwrap().forget();
        ended += terminate(&client, "true").await;
    }
}
