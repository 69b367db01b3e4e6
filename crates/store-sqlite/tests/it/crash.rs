//! Killing writing processes at any instant loses nothing that was acknowledged.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture_store::{MemoryStore, PathEnd, ReadRequest};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch, branch_end, item, node};
use rusqlite::Connection;

use crate::children::{chat, parent_task, report_line, start_together, wait};
use crate::random_operations::Chance;

/// Processes that write at the same time.
const WRITERS: usize = 3;
/// Crashes that one file lives through.
const CRASHES: usize = 50;

/// The child: appends pairs until it is killed, and tells each acknowledged one with its depth.
#[tokio::test]
#[ignore = "the process that `killed_writers_lose_nothing` starts and kills"]
async fn writes_until_it_is_killed() {
    let Some((path, name)) = parent_task() else {
        return;
    };
    let chat = chat(&path);
    wait();
    for n in 0.. {
        let word = format!("{name} {n}");
        let done = chat
            .append_messages("main", &[&word, &format!("{word}!")])
            .await;
        report_line(&format!("{} {word}", done.first));
    }
}

/// Starts the writers, kills each at a moment of its own, and gives what they told. Those that live
/// longer write on beside the dead.
fn crash(path: &Path, round: usize, chance: &mut Chance) -> Vec<String> {
    let names = (0..WRITERS).map(|writer| format!("{round} {writer}"));
    let mut writers = start_together("crash::writes_until_it_is_killed", path, names);
    let mut told = Vec::new();
    let mut moments: Vec<u64> = (0..WRITERS).map(|_| 2 + chance.below(199)).collect();
    moments.sort_unstable();
    let mut now = 0;
    while !writers.is_empty() {
        let moment = moments.remove(0);
        std::thread::sleep(Duration::from_millis(moment - now));
        now = moment;
        let mut victim = writers.swap_remove(chance.below(writers.len() as u64) as usize);
        victim.kill();
        told.extend(victim.remaining_lines());
    }
    told
}

/// One file and the crashes it lives through.
struct Survivor {
    acknowledged: usize,
    unacknowledged: usize,
}

impl Survivor {
    /// What must hold after a crash.
    async fn check(&mut self, path: &Path, told: &[String]) {
        let verdict: String = Connection::open(path)
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(verdict, "ok");
        let chat = chat(path);
        // No gap (`path` checks depths), no duplicate, no half of a pair.
        let path = chat.path_nodes(branch_end("main")).await;
        let ids: BTreeSet<_> = path.iter().map(|node| node.id).collect();
        assert_eq!((ids.len(), path.len() % 2), (path.len(), 0));
        for line in told {
            let (first, word) = line.split_once(' ').unwrap();
            let first: usize = first.parse().unwrap();
            let pair = path
                .get(first - 1..=first)
                .map(|pair| (pair[0].id, pair[1].id));
            let wanted = (node(word), node(&format!("{word}!")));
            assert_eq!(
                pair,
                Some(wanted),
                "{word:?} was acknowledged at depth {first}"
            );
        }
        // At most what each writer was about is there without having been acknowledged.
        self.acknowledged += told.len();
        let extra = path.len() / 2 - self.acknowledged;
        assert!(extra - self.unacknowledged <= WRITERS, "{extra} pairs");
        self.unacknowledged = extra;
        // Repeating what was acknowledged changes nothing.
        if let Some((_, word)) = told.last().and_then(|line| line.split_once(' ')) {
            let again = chat
                .append_messages("main", &[word, &format!("{word}!")])
                .await;
            assert!(again.replayed, "{word:?}");
        }
        assert_eq!(chat.branch_record("main").await.nodes, path.len() as u64);
    }
}

#[test]
fn killed_writers_lose_nothing() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let rounds = if soak { 500 } else { 12 };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut chance = Chance::of_run();
    let (mut acknowledged, mut unacknowledged) = (0, 0);
    for first in (0..rounds).step_by(CRASHES) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crash.db");
        runtime.block_on(async {
            Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
        });
        let mut file = Survivor {
            acknowledged: 0,
            unacknowledged: 0,
        };
        for round in first..rounds.min(first + CRASHES) {
            let told = crash(&path, round, &mut chance);
            runtime.block_on(file.check(&path, &told));
        }
        acknowledged += file.acknowledged;
        unacknowledged += file.unacknowledged;
    }
    println!(
        "{rounds} times {WRITERS} writers were killed: of {acknowledged} acknowledged pairs 0 lost, \
         {unacknowledged} stored without having been acknowledged"
    );
    assert!(
        acknowledged > rounds,
        "too little was written between the crashes"
    );
}

/// Sixteen writers of one file, as different processes would be: everything arrives once.
#[tokio::test(flavor = "multi_thread")]
async fn several_stores_share_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared.db");
    Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    let tasks: Vec<_> = (0..16)
        .map(|writer| {
            let chat = chat(&path);
            tokio::spawn(async move {
                for n in 0..8 {
                    chat.append_messages("main", &[&format!("{writer} {n}")])
                        .await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let chat = chat(&path);
    let path = chat.path_nodes(branch_end("main")).await;
    let ids: std::collections::BTreeSet<_> = path.iter().map(|node| node.id).collect();
    assert_eq!((path.len(), ids.len()), (128, 128));
    for writer in 0..16 {
        let depth = |n| {
            path.iter()
                .position(|at| at.id == node(&format!("{writer} {n}")))
        };
        assert!((1..8).all(|n| depth(n - 1) < depth(n)), "writer {writer}");
    }
}

/// What one backend wrote, the other takes over node by node, and it is the same conversation.
#[tokio::test(flavor = "multi_thread")]
async fn both_backends_hold_the_same_conversation() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Chat::start(Arc::new(
        SqliteStore::open(directory.path().join("a.db")).unwrap(),
    ))
    .await;
    let memory = Chat::start(Arc::new(MemoryStore::new())).await;
    for chat in [&sqlite, &memory] {
        chat.append_messages("main", &["a", "b", "c"]).await;
        chat.rewind("main", "b", contexture_store::Activation::Activate)
            .await;
        chat.append_to_tip("main-v2", vec![item("d")])
            .await
            .unwrap();
    }
    for name in ["main", "main-v2"] {
        let at = || ReadRequest::whole_path(PathEnd::Branch(branch(name)));
        assert_eq!(
            sqlite.read_path(at()).await.unwrap(),
            memory.read_path(at()).await.unwrap()
        );
    }
    let refs = |chat: &Chat| {
        let chat = chat.clone();
        async move { chat.store.list_refs(&chat.owner, &chat.id).await.unwrap() }
    };
    assert_eq!(refs(&sqlite).await, refs(&memory).await);
}
