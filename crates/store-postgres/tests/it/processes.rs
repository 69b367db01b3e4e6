//! Several processes write one branch of one database: nothing is lost, doubled or out of order,
//! nobody is turned away, and who is killed leaves nothing half.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_ir::NodeId;
use contexture_store::{AppendPoint, AppendRequest, Error, verify_conversation};
use contexture_store_postgres::{PostgresOptions, PostgresStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch, branch_end, item, node};

use crate::children::{parent_task, report_line, start_together, wait};
use crate::server::Database;

/// The conversation as a process of its own sees it.
async fn chat(address: &str) -> Chat {
    let options = PostgresOptions {
        connections: 2,
        // A machine that is busy with other things turns nobody away.
        lock_timeout: Duration::from_secs(600),
        ..PostgresOptions::default()
    };
    Chat {
        store: Arc::new(PostgresStore::open_with(address, options).await.unwrap()),
        owner: "ada".parse().unwrap(),
        id: "chat".parse().unwrap(),
    }
}

/// The child: appends its share and tells at what depths, and at last its longest append and how
/// often somebody else was faster. Even shares go after whatever the head is, odd ones after the
/// head they know.
#[tokio::test]
#[ignore = "the process that `many_processes_write_one_branch` starts"]
async fn appends_its_share() {
    let Some((address, share)) = parent_task() else {
        return;
    };
    let (number, count) = share.split_once('/').unwrap();
    let (number, count): (usize, usize) = (number.parse().unwrap(), count.parse().unwrap());
    let chat = chat(&address).await;
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

/// What was acknowledged, by depth.
#[derive(Default)]
struct Acknowledged {
    nodes: BTreeMap<u64, NodeId>,
    longest: u64,
    moved: u64,
}

impl Acknowledged {
    fn record_line(&mut self, line: &str) {
        let (first, rest) = line.split_once(' ').unwrap();
        if let Ok(depth) = first.parse() {
            let before = self.nodes.insert(depth, node(rest));
            assert_eq!(before, None, "two appends at depth {depth}");
        } else {
            let (waited, times) = rest.split_once(' ').unwrap();
            self.longest = self.longest.max(waited.parse().unwrap());
            self.moved += times.parse::<u64>().unwrap();
        }
    }
}

async fn has_no_findings(chat: &Chat) {
    let upkeep = chat.store.maintenance().unwrap();
    let checked = verify_conversation(upkeep, &chat.owner, &chat.id)
        .await
        .unwrap();
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_write_one_branch() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (processes, count) = if soak { (32, 125) } else { (8, 30) };
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let shares = (0..processes).map(|number| format!("{number}/{count}"));
    let test = "processes::appends_its_share";
    let children = start_together(test, &database.address, shares);
    let since = Instant::now();
    let mut acknowledged = Acknowledged::default();
    for child in children {
        for line in child.finish() {
            acknowledged.record_line(&line);
        }
    }
    let took = since.elapsed();
    let path = chat.path_nodes(branch_end("main")).await;
    let stored: Vec<_> = path.iter().map(|node| (node.depth, node.id)).collect();
    assert_eq!(stored.len(), processes * count);
    assert_eq!(stored, Vec::from_iter(acknowledged.nodes));
    has_no_findings(&chat).await;
    println!(
        "{processes} processes, {count} appends each: {took:.1?}, the longest append {:.0?}, \
         {} times another was faster",
        Duration::from_micros(acknowledged.longest),
        acknowledged.moved
    );
    drop(chat);
    database.drop().await;
}

/// Every second process is killed at some word of its; the others go on.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_killed_leaves_what_was_acknowledged() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (rounds, processes, count) = if soak { (20, 16, 60) } else { (1, 6, 20) };
    let database = Database::migrated().await;
    let (mut told, mut untold) = (0, 0);
    for round in 0..rounds {
        let store = database.store().await;
        let chat = Chat::start(Arc::clone(&store)).await;
        // Those that are killed would go on for ever.
        let shares = (0..processes).map(|number| match number % 2 {
            0 => format!("{number}/{count}"),
            _ => format!("{number}/{}", u32::MAX),
        });
        let test = "processes::appends_its_share";
        let mut children = start_together(test, &database.address, shares);
        let mut acknowledged = Acknowledged::default();
        for (number, child) in children.iter_mut().enumerate() {
            if number % 2 == 1 {
                for _ in 0..=(number * 7 + round * 5) % count {
                    acknowledged.record_line(&child.next_line().unwrap());
                }
                child.kill();
            }
        }
        for (number, mut child) in children.into_iter().enumerate() {
            let rest = match number % 2 {
                0 => child.finish(),
                _ => child.remaining_lines(),
            };
            rest.iter().for_each(|line| acknowledged.record_line(line));
        }
        told += acknowledged.nodes.len();
        // Each may have been killed after one that was stored and before it could tell.
        let path = chat.path_nodes(branch_end("main")).await;
        untold += path.len() - acknowledged.nodes.len();
        assert!(path.len() - acknowledged.nodes.len() <= processes / 2);
        for (depth, node) in (1..).zip(&path) {
            acknowledged.nodes.entry(depth).or_insert(node.id);
        }
        let stored: Vec<_> = path.iter().map(|node| (node.depth, node.id)).collect();
        assert_eq!(stored, Vec::from_iter(acknowledged.nodes));
        let ids: BTreeSet<_> = path.iter().map(|node| node.id).collect();
        assert_eq!(ids.len(), path.len());
        has_no_findings(&chat).await;
        let deleted = store.delete_conversation(&chat.owner, &chat.id);
        deleted.await.unwrap();
    }
    println!("{rounds} rounds: {told} acknowledged, none lost; {untold} more were stored");
    database.drop().await;
}
