//! Killing a writing process at any instant loses nothing that was acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use contexture_store::{At, MemoryStore, ReadRequest, Store};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch, item, node, on};

const DATABASE: &str = "CONTEXTURE_TEST_DATABASE";
const ROUND: &str = "CONTEXTURE_TEST_ROUND";

fn chat(store: Arc<dyn Store>) -> Chat {
    Chat {
        store,
        owner: "ada".parse().unwrap(),
        id: "chat".parse().unwrap(),
    }
}

/// The child: appends pairs from three tasks until it is killed, and prints each acknowledged one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that `killed_writers_lose_nothing` starts and kills"]
async fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(DATABASE) else {
        return;
    };
    let round = std::env::var(ROUND).unwrap();
    let chat = chat(Arc::new(SqliteStore::open(path).unwrap()));
    let tasks: Vec<_> = (0..3)
        .map(|task| {
            let (chat, round) = (chat.clone(), round.clone());
            tokio::spawn(async move {
                for n in 0.. {
                    let word = format!("{round} {task} {n}");
                    chat.say("main", &[&word, &format!("{word}!")]).await;
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "acknowledged {word}").unwrap();
                    out.flush().unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Starts the child, kills it after `count` acknowledgements, and gives all that it printed.
fn kill_after(path: &Path, round: usize, count: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writes_until_it_is_killed"])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .env(DATABASE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut words = Vec::new();
    let acknowledged = |line: &str| line.split_once("acknowledged ").map(|(_, w)| w.to_owned());
    while words.len() < count {
        words.extend(acknowledged(&lines.next().unwrap().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it still managed to print was acknowledged too; a torn last line was not.
    let mut rest = lines.map_while(Result::ok).collect::<Vec<_>>();
    if rest
        .last()
        .is_some_and(|last| last.matches(' ').count() < 3)
    {
        rest.pop();
    }
    words.extend(rest.iter().filter_map(|line| acknowledged(line)));
    words
}

#[test]
fn killed_writers_lose_nothing() {
    let rounds = if std::env::var_os("CONTEXTURE_SOAK").is_some() {
        500
    } else {
        6
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crash.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&path).unwrap();
        Chat::start(Arc::new(store)).await;
    });
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        acknowledged.extend(kill_after(&path, round, 3 + 7 * (round % 11)));
    }
    runtime.block_on(async {
        let chat = chat(Arc::new(SqliteStore::open(&path).unwrap()));
        let path = chat.path(on("main")).await;
        // No gap, no duplicate (`path` checks depths), no half of a pair.
        assert_eq!(path.len() % 2, 0);
        let ids: std::collections::BTreeSet<_> = path.iter().map(|node| node.id).collect();
        assert_eq!(ids.len(), path.len());
        for word in &acknowledged {
            assert!(ids.contains(&node(word)), "{word:?} was acknowledged");
            assert!(
                ids.contains(&node(&format!("{word}!"))),
                "{word:?} is half there"
            );
        }
        // Per kill at most what was in flight is there unacknowledged.
        let extra = path.len() / 2 - acknowledged.len();
        assert!(extra <= 3 * rounds, "{extra} unacknowledged pairs");
        // Repeating what was acknowledged changes nothing.
        let word = acknowledged.last().unwrap();
        assert!(
            chat.say("main", &[word, &format!("{word}!")])
                .await
                .replayed
        );
        chat.say("main", &["after"]).await;
        assert_eq!(chat.branch("main").await.nodes, path.len() as u64 + 1);
    });
    let conn = rusqlite::Connection::open(&path).unwrap();
    let verdict: String = conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}

/// Sixteen writers of one file, as different processes would be: everything arrives once.
#[tokio::test(flavor = "multi_thread")]
async fn several_stores_share_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared.db");
    Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    let tasks: Vec<_> = (0..16)
        .map(|writer| {
            let chat = chat(Arc::new(SqliteStore::open(&path).unwrap()));
            tokio::spawn(async move {
                for n in 0..8 {
                    chat.say("main", &[&format!("{writer} {n}")]).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let chat = chat(Arc::new(SqliteStore::open(&path).unwrap()));
    let path = chat.path(on("main")).await;
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
        chat.say("main", &["a", "b", "c"]).await;
        chat.rewind("main", "b", contexture_store::Activation::Activate)
            .await;
        chat.tip("main-v2", vec![item("d")]).await.unwrap();
    }
    for name in ["main", "main-v2"] {
        let at = || ReadRequest::whole(At::Branch(branch(name)));
        assert_eq!(
            sqlite.read(at()).await.unwrap(),
            memory.read(at()).await.unwrap()
        );
    }
    let refs = |chat: &Chat| {
        let chat = chat.clone();
        async move { chat.store.refs(&chat.owner, &chat.id).await.unwrap() }
    };
    assert_eq!(refs(&sqlite).await, refs(&memory).await);
}
