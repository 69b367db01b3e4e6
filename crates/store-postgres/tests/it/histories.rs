//! Histories of clients in several processes on one database, some of them killed and all of their sessions ended again and
//! again, show no anomaly; nor do those of clients whose database server crashes and recovers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use contexture_store_postgres::PostgresStore;
use contexture_store_testkit::history::{HistoryClient, HistoryLog, check_history, read_history};
use contexture_store_testkit::{Chat, test_seed};
use tokio_postgres::Client;

use crate::children::{parent_task, report_line, start_together, wait};
use crate::faults::terminate;
use crate::own_server::OwnServer;
use crate::server::Database;

/// Processes of a round, each with a store of its own as a server has. Every second one is killed.
const PROCESSES: u64 = 4;
/// Clients of a process, which share its store.
const CLIENTS: u64 = 2;
/// Operations of a client that is not killed.
const OPERATIONS: u64 = 20;

/// The child: works as its clients, and tells each operation that has ended.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that `histories_of_killed_processes_are_correct` starts and kills"]
async fn works_and_records() {
    let Some((address, task)) = parent_task() else {
        return;
    };
    let words: Vec<&str> = task.splitn(4, ' ').collect();
    let [name, seed, operations, file] = words[..] else {
        panic!("{task:?} is no task");
    };
    let (seed, operations): (u64, u64) = (seed.parse().unwrap(), operations.parse().unwrap());
    let chat = Chat {
        store: Arc::new(PostgresStore::open(&address).await.unwrap()),
        owner: "ada".parse().unwrap(),
        id: "chat".parse().unwrap(),
    };
    let log = Arc::new(HistoryLog::open(Path::new(file)));
    wait();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let name = format!("{name}-{number}");
            let mut client = HistoryClient::new(chat.clone(), Arc::clone(&log), name);
            let mut random = fastrand::Rng::with_seed(seed + number);
            tokio::spawn(async move {
                for _ in 0..operations {
                    client.run_operation(random.u64(..)).await;
                    report_line("done");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

/// Runs one round: every second process would work for ever, and is killed after some of its operations; before that, all
/// sessions of all processes are ended. Returns how many were.
async fn run_round(
    (address, file): (&str, &Path),
    (client, round): (&Client, u64),
    random: &mut fastrand::Rng,
) -> u64 {
    let tasks = (0..PROCESSES).map(|number| {
        let operations = match number % 2 {
            0 => OPERATIONS,
            _ => u64::MAX,
        };
        let seed = random.u64(..1 << 40);
        format!("r{round}p{number} {seed} {operations} {}", file.display())
    });
    let tasks: Vec<String> = tasks.collect();
    let mut children = start_together("histories::works_and_records", address, tasks);
    let mut ended = 0;
    for child in children.iter_mut().skip(1).step_by(2) {
        for _ in 0..=random.u64(..OPERATIONS * CLIENTS) {
            assert_eq!(child.next_line().as_deref(), Some("done"));
            if random.u8(..8) == 0 {
                ended += terminate(client, "true").await;
            }
        }
        child.kill();
    }
    for (number, mut child) in children.into_iter().enumerate() {
        match number % 2 {
            0 => child.finish(),
            _ => child.remaining_lines(),
        };
    }
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_of_killed_processes_are_correct() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let rounds = if soak { 300 } else { 4 };
    let mut random = fastrand::Rng::with_seed(test_seed());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let client = database.client().await;
    let mut ended = 0;
    for round in 0..rounds {
        ended += run_round((&database.address, &file), (&client, round), &mut random).await;
    }
    let checked = check_history(&read_history(&file), &chat.path_words().await);
    println!(
        "{rounds} rounds: {} operations, {ended} sessions ended, {} appends acknowledged, {} operations refused, {} of unknown outcome",
        checked.operations, checked.acknowledged, checked.refused, checked.unknown
    );
    assert_eq!(checked.anomalies, BTreeSet::new());
    // Whoever is killed has an operation open, more often than not.
    assert!(ended > 0 && checked.unknown > 0 && checked.acknowledged as u64 > rounds * 10);
    drop(chat);
    database.drop().await;
}

/// Two stores, as two servers have them, whose clients go on while the database server crashes and recovers.
#[tokio::test(flavor = "multi_thread")]
async fn histories_across_crashes_of_the_server_are_correct() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let crashes = if soak { 100 } else { 3 };
    let mut server = match OwnServer::start().await {
        Ok(server) => server,
        Err(why) => return println!("{why}"),
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history");
    let log = Arc::new(HistoryLog::open(&file));
    let first = Chat::start(server.store().await).await;
    let second = Chat {
        store: server.store().await,
        ..first.clone()
    };
    let (done, is_over) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let seed = test_seed();
    let clients: Vec<_> = [&first, &second, &first, &second]
        .into_iter()
        .zip(0..)
        .map(|(chat, number)| {
            let mut client =
                HistoryClient::new(chat.clone(), Arc::clone(&log), format!("c{number}"));
            let (done, is_over) = (Arc::clone(&done), Arc::clone(&is_over));
            let mut random = fastrand::Rng::with_seed(seed + number);
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    client.run_operation(random.u64(..)).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let wait_for = async |count: u64| {
        while done.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    for _ in 0..crashes {
        wait_for(done.load(Ordering::Relaxed) + random.u64(20..80)).await;
        tokio::task::block_in_place(|| server.crash());
    }
    wait_for(done.load(Ordering::Relaxed) + 20).await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let checked = check_history(&read_history(&file), &first.path_words().await);
    println!(
        "{crashes} crashes: {} operations, {} appends acknowledged, {} operations refused, {} of unknown outcome",
        checked.operations, checked.acknowledged, checked.refused, checked.unknown
    );
    assert_eq!(checked.anomalies, BTreeSet::new());
    // Each crash meets operations that are open.
    assert!(checked.unknown + checked.refused > 0 && checked.acknowledged > crashes * 5);
}
