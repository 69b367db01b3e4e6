//! Killing a process that records calls and sums them up neither loses a call nor counts one twice.

use std::path::Path;
use std::time::Duration;

use contexture_ir::{CallId, Owner};
use contexture_store::{
    CALL_HOUR_MS, CallDetails, CallGrouping, CallRecord, CallSum, CallTokens, Calls, ListCalls,
    Store as _, SumCalls, SweepCalls, verify_calls,
};
use contexture_store_sqlite::SqliteStore;

use crate::children::{Process, parent_task, report_line, wait};
use crate::random_operations::Chance;

/// Calls that are recorded at once: a sweep takes more than one such batch in a step.
const BATCH: u64 = 400;
/// Hours that the calls of a process are in.
const HOURS: i64 = 7;

fn owner() -> Owner {
    "ada".parse().unwrap()
}

/// A call whose figures depend on its number, of a process of this number.
fn numbered_call(process: u64, number: u64) -> CallRecord {
    let mut random = [0; 10];
    random[..2].copy_from_slice(&(process as u16).to_be_bytes());
    random[2..].copy_from_slice(&number.to_be_bytes());
    let hour = number as i64 % HOURS;
    let mut call = CallRecord::new(CallId::from_time(hour * CALL_HOUR_MS, random), "openai");
    call.names.model = format!("model {}", number % 3);
    call.details = CallDetails {
        tokens: Some(CallTokens {
            input: number,
            output: process,
            ..CallTokens::default()
        }),
        pico_dollars: Some(number * 1_000_003),
        ..CallDetails::default()
    };
    call
}

/// The child: records calls and puts them into roll-ups, step by step, until it is killed.
#[tokio::test]
#[ignore = "the process that `killed_sweeps_count_each_call_once` starts and kills"]
async fn sweeps_until_it_is_killed() {
    let Some((path, name)) = parent_task() else {
        return;
    };
    let store = SqliteStore::open(&path).unwrap();
    let (calls, process) = (store.calls().unwrap(), name.parse().unwrap());
    let owner = owner();
    wait();
    for batch in 0.. {
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        let rows = numbers.map(|number| numbered_call(process, number));
        calls.record_calls(&owner, rows.collect()).await.unwrap();
        report_line(&batch.to_string());
        let sweep = SweepCalls {
            roll_up_before_ms: HOURS * CALL_HOUR_MS,
            remove_before_ms: 0,
            remove_bodies_before_ms: 0,
        };
        calls.sweep_calls(&owner, sweep).await.unwrap();
    }
}

/// Starts a process and kills it some time after its first batches; gives the number of batches that it told.
fn crash(path: &Path, process: u64, chance: &mut Chance) -> u64 {
    let mut child = Process::start(
        "call_sweeps::sweeps_until_it_is_killed",
        path,
        &process.to_string(),
    );
    child.await_ready();
    child.release();
    let mut told: u64 = 0;
    for _ in 0..1 + chance.below(6) {
        child.next_line().unwrap();
        told += 1;
    }
    // In the middle of what it does next, whatever that is.
    std::thread::sleep(Duration::from_micros(chance.below(20_000)));
    child.kill();
    told + child.remaining_lines().len() as u64
}

/// The sum of the rows, added up one by one.
async fn sum_of_rows(calls: &dyn Calls) -> CallSum {
    let list = ListCalls {
        limit: Some(usize::MAX),
        ..ListCalls::default()
    };
    let mut sum = CallSum::default();
    for call in calls.list_calls(&owner(), list).await.unwrap().calls {
        sum.add_sum(&CallSum::of_call(call.outcome, &call.details));
    }
    sum
}

#[test]
fn killed_sweeps_count_each_call_once() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let rounds = if soak { 300 } else { 12 };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut chance = Chance::of_run();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sweeps.db");
    let mut acknowledged = 0;
    let mut open = 0;
    for round in 0..rounds {
        acknowledged += crash(&path, round, &mut chance) * BATCH;
        runtime.block_on(async {
            let store = SqliteStore::open(&path).unwrap();
            let calls = store.calls().unwrap();
            let rows = sum_of_rows(calls).await;
            for by in [vec![], vec![CallGrouping::Model], CallGrouping::ALL.into()] {
                let sum = SumCalls {
                    by,
                    ..SumCalls::default()
                };
                let mut sums = CallSum::default();
                for (_, part) in calls.sum_calls(&owner(), sum).await.unwrap() {
                    sums.add_sum(&part);
                }
                assert_eq!(sums, rows, "after {round} crashes");
            }
            let verified = verify_calls(calls, &owner(), HOURS * CALL_HOUR_MS).await;
            assert_eq!(verified.unwrap().findings, []);
            // Batches are stored whole or not at all; at most one of each process was not told.
            assert_eq!(rows.calls % BATCH, 0);
            let untold = (rows.calls - acknowledged) / BATCH;
            assert!(untold <= round + 1, "{untold} batches");
        });
        let file = rusqlite::Connection::open(&path).unwrap();
        let count = "SELECT count(*) FROM calls WHERE open = 1";
        open += file
            .query_row(count, [], |row| row.get::<_, u32>(0))
            .unwrap();
    }
    // What is not in order is found.
    let file = rusqlite::Connection::open(&path).unwrap();
    for damage in [
        "UPDATE call_sums SET pico_dollars = pico_dollars - 1 WHERE hour = 3",
        "UPDATE call_sums SET calls = calls + 1 WHERE hour = 3",
    ] {
        assert!(file.execute(damage, []).unwrap() > 0, "{damage}");
        runtime.block_on(async {
            let store = SqliteStore::open(&path).unwrap();
            let (owner, calls) = (owner(), store.calls().unwrap());
            let verified = verify_calls(calls, &owner, HOURS * CALL_HOUR_MS);
            let found = verified.await.unwrap().findings;
            let hours: Vec<_> = found.iter().map(|one| one.hour_ms).collect();
            assert_eq!(hours, [Some(3 * CALL_HOUR_MS)], "{damage}");
        });
    }
    println!("{rounds} sweeps were killed: {acknowledged} acknowledged calls, each counted once");
    assert!(open > 0, "no process was killed before its sweep was done");
}
