//! Histories of clients in several processes on one file, some of them killed, show no anomaly.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::history::{HistoryClient, HistoryLog, check_history, read_history};

use crate::children::{chat, parent_task, report_line, start_together, wait};
use crate::random_operations::Chance;

/// Processes of a round. Every second one is killed.
const PROCESSES: u64 = 4;
/// Clients of a process, which share its store.
const CLIENTS: u64 = 2;
/// Operations of a client that is not killed.
const OPERATIONS: u64 = 20;

/// The child: works as its clients, and tells each operation that has ended.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that `histories_of_killed_processes_are_correct` starts and kills"]
async fn works_and_records() {
    let Some((path, task)) = parent_task() else {
        return;
    };
    let (name, rest) = task.split_once(' ').unwrap();
    let (seed, operations) = rest.split_once(' ').unwrap();
    let (seed, operations): (u64, u64) = (seed.parse().unwrap(), operations.parse().unwrap());
    let chat = chat(&path);
    let log = Arc::new(HistoryLog::open(&path.with_extension("history")));
    wait();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let name = format!("{name}-{number}");
            let mut client = HistoryClient::new(chat.clone(), Arc::clone(&log), name);
            let mut chance = Chance::of(seed + number);
            tokio::spawn(async move {
                for _ in 0..operations {
                    client.run_operation(chance.below(u64::MAX)).await;
                    report_line("done");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

/// Runs one round: every second process would work for ever, and is killed after some of its operations.
fn run_round(path: &Path, round: u64, chance: &mut Chance) {
    let tasks = (0..PROCESSES).map(|number| {
        let operations = match number % 2 {
            0 => OPERATIONS,
            _ => u64::MAX,
        };
        format!("r{round}p{number} {} {operations}", chance.below(1 << 40))
    });
    let tasks: Vec<String> = tasks.collect();
    let mut children = start_together("histories::works_and_records", path, tasks);
    for child in children.iter_mut().skip(1).step_by(2) {
        for _ in 0..=chance.below(OPERATIONS * CLIENTS) {
            assert_eq!(child.next_line().as_deref(), Some("done"));
        }
        child.kill();
    }
    for (number, mut child) in children.into_iter().enumerate() {
        match number % 2 {
            0 => child.finish(),
            _ => child.remaining_lines(),
        };
    }
}

#[test]
fn histories_of_killed_processes_are_correct() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let rounds = if soak { 300 } else { 4 };
    let mut chance = Chance::of_run();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    runtime.block_on(async {
        Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    });
    for round in 0..rounds {
        run_round(&path, round, &mut chance);
    }
    let events = read_history(&path.with_extension("history"));
    let words = runtime.block_on(chat(&path).path_words());
    let checked = check_history(&events, &words);
    println!(
        "{rounds} rounds: {} operations, {} appends acknowledged, {} operations refused, {} of unknown outcome",
        checked.operations, checked.acknowledged, checked.refused, checked.unknown
    );
    assert_eq!(checked.anomalies, BTreeSet::new());
    // Whoever is killed has an operation open, more often than not.
    assert!(checked.unknown > 0 && checked.acknowledged > rounds as usize * 10);
}
