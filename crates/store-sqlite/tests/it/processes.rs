//! Several processes write one branch of one file: nothing is lost, doubled or out of order, and
//! nobody is turned away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_ir::NodeId;
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BranchLabel, Error, ReadRequest, RefChange,
};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch, branch_end, item, new_branch, node};
use rusqlite::Connection;

use crate::children::{chat, parent_task, report_line, start_together, wait};

/// The child: appends its share and tells at what depths, and at last its longest append and how
/// often somebody else was faster. Even shares go after whatever the head is, odd ones after the
/// head they know.
#[tokio::test]
#[ignore = "the process that `many_processes_write_one_branch` starts"]
async fn appends_its_share() {
    let Some((path, share)) = parent_task() else {
        return;
    };
    let (number, count) = share.split_once('/').unwrap();
    let (number, count): (usize, usize) = (number.parse().unwrap(), count.parse().unwrap());
    let chat = chat(&path);
    wait();
    let (mut head, mut longest, mut moved) = (None, Duration::ZERO, 0);
    for n in 0..count {
        let word = format!("{number} {n}");
        let depth = loop {
            let at = match number % 2 {
                0 => Chat::at_tip("main"),
                _ => AppendPoint::Head {
                    branch: branch("main"),
                    head,
                },
            };
            let request = AppendRequest::new(at, vec![item(&word)], NOW);
            let since = Instant::now();
            let done = chat.append_request(request).await;
            longest = longest.max(since.elapsed());
            match done {
                Ok(done) => {
                    head = done.head;
                    break done.depth;
                }
                Err(Error::HeadMoved { actual, .. }) => {
                    moved += 1;
                    head = actual;
                }
                Err(error) => panic!("{word}: {error}"),
            }
        };
        report_line(&format!("{depth} {word}"));
    }
    report_line(&format!("longest {} {moved}", longest.as_micros()));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_write_one_branch() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (processes, count) = if soak { (32, 125) } else { (8, 60) };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared.db");
    let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    let shares = (0..processes).map(|number| format!("{number}/{count}"));
    let children = start_together("processes::appends_its_share", &path, shares);
    let since = Instant::now();
    let mut acknowledged: BTreeMap<u64, NodeId> = BTreeMap::new();
    let (mut longest, mut moved) = (0, 0);
    for child in children {
        for line in child.finish() {
            let (first, rest) = line.split_once(' ').unwrap();
            if let Ok(depth) = first.parse() {
                let before = acknowledged.insert(depth, node(rest));
                assert_eq!(before, None, "two appends at depth {depth}");
            } else {
                let (waited, times) = rest.split_once(' ').unwrap();
                longest = longest.max(waited.parse().unwrap());
                moved += times.parse::<u64>().unwrap();
            }
        }
    }
    let took = since.elapsed();
    let path = chat.path_nodes(branch_end("main")).await;
    let stored: Vec<_> = path.iter().map(|node| (node.depth, node.id)).collect();
    assert_eq!(stored.len(), processes * count);
    assert_eq!(stored, Vec::from_iter(acknowledged));
    println!(
        "{processes} processes, {count} appends each: {took:.1?}, the longest append {:.0?}, \
         {moved} times another was faster",
        Duration::from_micros(longest)
    );
}

/// The child: appends, reads and rewinds until the conversation is gone.
#[tokio::test]
#[ignore = "the process that `deleting_wins_over_writers` starts"]
async fn works_until_it_is_gone() {
    let Some((path, number)) = parent_task() else {
        return;
    };
    let chat = chat(&path);
    let work = async |word: String| {
        chat.append_to_tip("main", vec![item(&word)]).await?;
        chat.read_path(ReadRequest::last_nodes(branch_end("main"), 10))
            .await?;
        let label = BranchLabel::After(branch("main"));
        let back = new_branch(Some(&word), label, Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(back)).await
    };
    wait();
    for n in 0.. {
        match work(format!("{number} {n}")).await {
            Ok(_) => report_line("done"),
            Err(Error::NotFound { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let gone = chat
        .store
        .list_refs(&chat.owner, &chat.id)
        .await
        .unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
}

/// Who works on a conversation while another process deletes it learns that, and no row is left.
#[tokio::test(flavor = "multi_thread")]
async fn deleting_wins_over_writers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deleted.db");
    let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    let other = Chat::start_as(Arc::clone(&chat.store), "ada", "other").await;
    let numbers = (0..3).map(|number| number.to_string());
    let mut writers = start_together("processes::works_until_it_is_gone", &path, numbers);
    for writer in &mut writers {
        for _ in 0..5 {
            assert_eq!(writer.next_line().as_deref(), Some("done"));
        }
    }
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    for writer in writers {
        writer.finish();
    }
    other.append_messages("main", &["here"]).await;
    drop((chat, other));
    let conn = Connection::open(&path).unwrap();
    for (sql, wanted) in [
        ("SELECT count(*) FROM conversations", 1),
        ("SELECT count(*) FROM deletions", 0),
        ("SELECT count(*) FROM branches", 1),
        ("SELECT count(*) FROM segments", 1),
        ("SELECT count(*) FROM nodes", 1),
        ("SELECT count(*) FROM search WHERE rowid >> 10 = 1", 0),
        ("SELECT count(*) FROM events WHERE id >> 32 = 1", 0),
    ] {
        let rows: i64 = conn.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, wanted, "{sql}");
    }
}

/// The child: opens the database as soon as it may, and writes a conversation of its own.
#[tokio::test]
#[ignore = "the process that `several_processes_open_a_file_at_once` starts"]
async fn opens_and_writes() {
    let Some((path, name)) = parent_task() else {
        return;
    };
    wait();
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    let chat = Chat::start_as(store, &name, "own").await;
    chat.append_messages("main", &["one", "two"]).await;
}

/// A file that is not there yet, and one of the first format: one process makes or migrates it, the
/// others wait.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_open_a_file_at_once() {
    let dump = include_str!("../fixtures/format-1/dump.sql");
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let directory = tempfile::tempdir().unwrap();
    for round in 0..if soak { 50 } else { 2 } {
        for old in [None, Some(dump)] {
            let name = format!("{round}-{}.db", old.map_or("new", |_| "old"));
            let path = directory.path().join(name);
            if let Some(dump) = old {
                Connection::open(&path)
                    .unwrap()
                    .execute_batch(dump)
                    .unwrap();
            }
            let names = (0..3).map(|number| format!("owner-{number}"));
            for child in start_together("processes::opens_and_writes", &path, names) {
                child.finish();
            }
            let store = Arc::new(SqliteStore::open(&path).unwrap());
            for number in 0..3 {
                let chat = Chat {
                    store: Arc::<SqliteStore>::clone(&store),
                    owner: format!("owner-{number}").parse().unwrap(),
                    id: "own".parse().unwrap(),
                };
                chat.expect_path("main", &["one", "two"]).await;
            }
            if old.is_some() {
                let chat = chat(&path);
                let wanted = ["one", "two", "three again", "six"];
                chat.expect_path("main-v2", &wanted).await;
            }
        }
    }
}
