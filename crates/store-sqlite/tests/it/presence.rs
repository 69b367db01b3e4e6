//! Processes that share a file know at once that one of them has ended.

use std::path::Path;

use contexture_ir::ProcessId;
use contexture_store::{ProcessBeat, Processes as _};
use contexture_store_sqlite::SqliteStore;

use crate::children::{Process, parent_task, wait};

fn process(word: &str) -> ProcessId {
    ProcessId::derive("test", &[word.as_bytes()])
}

async fn read_beat(store: &SqliteStore, word: &str) -> Option<ProcessBeat> {
    let beats = store.beats(&[process(word)]).await.unwrap();
    beats.first().copied()
}

/// The lock files beside a database.
fn lock_files(database: &Path) -> usize {
    let folder = format!("{}-processes", database.display());
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
#[ignore = "a process of `killed_process_is_known_at_once`"]
fn process_that_is_killed() {
    let Some((database, word)) = parent_task() else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&database).unwrap();
        store.beat(process(&word)).await.unwrap();
        wait();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_process_is_known_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("shared.db");
    let store = SqliteStore::open(&database).unwrap();
    let mut child = Process::start("presence::process_that_is_killed", &database, "child");
    child.await_ready();
    store.beat(process("own")).await.unwrap();
    let beat = read_beat(&store, "child").await.unwrap();
    assert!(!beat.is_gone, "{beat:?}");
    child.kill();
    // Not within some time: the first look tells.
    let beat = read_beat(&store, "child").await.unwrap();
    assert!(beat.is_gone, "{beat:?}");
    assert!(!read_beat(&store, "own").await.unwrap().is_gone);
    let gone = store.list_processes().await.unwrap();
    let gone: Vec<ProcessBeat> = gone.into_iter().filter(|one| one.is_gone).collect();
    assert_eq!((gone.len(), lock_files(&database)), (1, 2));
    assert_eq!(store.remove_processes(&gone).await.unwrap(), 1);
    assert_eq!(lock_files(&database), 1);
    assert!(read_beat(&store, "child").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_store_is_known_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("shared.db");
    let [one, two] = [(); 2].map(|()| SqliteStore::open(&database).unwrap());
    // Two stores of one program are two processes.
    one.beat(process("one")).await.unwrap();
    two.beat(process("two")).await.unwrap();
    for _ in 0..3 {
        assert!(one.beat(process("one")).await.unwrap() > 1);
        assert!(!read_beat(&two, "one").await.unwrap().is_gone);
        assert!(!read_beat(&one, "one").await.unwrap().is_gone);
    }
    drop(one);
    assert!(read_beat(&two, "one").await.unwrap().is_gone);
    assert_eq!(lock_files(&database), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_without_a_lock_is_known_by_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("shared.db");
    // A file where the folder of the locks would be.
    std::fs::write(directory.path().join("shared.db-processes"), b"").unwrap();
    let [one, two] = [(); 2].map(|()| SqliteStore::open(&database).unwrap());
    assert_eq!(one.beat(process("one")).await.unwrap(), 1);
    drop(one);
    let beat = read_beat(&two, "one").await.unwrap();
    assert_eq!((beat.beat, beat.is_gone), (1, false));
}
