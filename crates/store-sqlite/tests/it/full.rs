//! A disk that is really full: a small file system that only this test sees.
//!
//! What is not here: the bound that a user sets on the database's size (`files`).

use std::path::Path;
use std::sync::Arc;

use contexture_store::{AppendRequest, Error, StorageFault};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch_end, node, raw_item};
use rusqlite::Connection;

use crate::children::{Process, chat, parent_task, report_line};
use crate::own_mounts;
use crate::random_operations::Chance;

/// The append with this number: a pair, at the end that the pair before it left.
fn pair(n: usize) -> AppendRequest {
    let mut chance = Chance::of(n as u64);
    let noise: String = (0..1000)
        .map(|_| format!("{:x}", chance.below(u64::MAX)))
        .collect();
    let (first, second) = (format!("n{n}"), format!("n{n}!"));
    let head = n.checked_sub(1).map(|before| format!("n{before}!"));
    let at = Chat::at_head("main", head.as_deref());
    AppendRequest::new(
        at,
        vec![raw_item(&first, &noise), raw_item(&second, "{}")],
        NOW,
    )
}

/// Appends from the pair `n` on until there is no space; gives how many pairs are stored then.
async fn fill(chat: &Chat, mut n: usize) -> usize {
    loop {
        match chat.append_request(pair(n)).await {
            Ok(_) => n += 1,
            Err(Error::Storage {
                fault: StorageFault::Full,
                ..
            }) => return n,
            Err(error) => panic!("{error}: {error:?}"),
        }
        assert!(n < 10_000, "the disk is never full");
    }
}

async fn check(chat: &Chat, pairs: usize) {
    let path = chat.path_nodes(branch_end("main")).await;
    let words = (0..pairs).flat_map(|n| [format!("n{n}"), format!("n{n}!")]);
    let wanted: Vec<_> = words.map(|word| node(&word)).collect();
    assert!(path.iter().map(|node| node.id).eq(wanted));
}

fn check_file(path: &Path) {
    let conn = Connection::open(path).unwrap();
    let verdict: String = conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}

/// The child, alone on its small disk.
#[tokio::test]
#[ignore = "the process that `a_full_disk_loses_nothing` starts"]
async fn fills_its_disk() {
    let Some((path, _)) = parent_task() else {
        return;
    };
    let ballast = path.with_file_name("ballast");
    std::fs::write(&ballast, vec![0; 3 << 20]).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let first = fill(&Chat::start(Arc::new(store)).await, 0).await;
    assert!(first > 10, "{first}");

    // Nothing fits, yet what is stored can be read, now and by whoever opens it next.
    std::fs::write(path.with_file_name("more"), vec![0; 8 << 20]).unwrap_err();
    match SqliteStore::open(path.with_file_name("another.db")).unwrap_err() {
        Error::Storage { fault, .. } => assert_eq!(fault, StorageFault::Full),
        error => panic!("{error:?}"),
    }
    let again = chat(&path);
    check(&again, first).await;
    assert_eq!(fill(&again, first).await, first);
    check(&again, first).await;

    // With space the very append that failed succeeds.
    std::fs::remove_file(path.with_file_name("more")).unwrap();
    std::fs::remove_file(&ballast).unwrap();
    let done = again.append_request(pair(first)).await.unwrap();
    assert!(!done.replayed);
    let second = fill(&again, first + 1).await;
    assert!(second > first + 10, "{second}");
    check(&again, second).await;
    drop(again);

    // Closing may or may not have emptied the log; either way nothing is lost.
    check_file(&path);
    let again = chat(&path);
    check(&again, second).await;
    let replay = again.append_request(pair(second - 1)).await.unwrap();
    assert!(replay.replayed);
    report_line(&format!("{first} pairs, then with more space {second}"));
}

#[test]
fn a_full_disk_loses_nothing() {
    if let Some(why) = own_mounts::missing() {
        println!("NOT TESTED: a full disk; {why}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let child = Process::start_under(
        &own_mounts::wrapper(
            directory.path(),
            "mount -t tmpfs -o size=8m tmpfs \"$0\" && exec \"$@\"",
        ),
        "full::fills_its_disk",
        &directory.path().join("full.db"),
        "",
    );
    println!("a disk of 8 MB: {:?}", child.finish());
}
