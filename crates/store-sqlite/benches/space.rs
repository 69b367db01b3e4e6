//! How large the file becomes: `cargo bench -p contexture-store-sqlite --bench space`.
//!
//! Bytes of the file over bytes of the items, the word index apart, for short messages and for the
//! recorded sessions of agents; and how long an import takes. What an empty database has is taken
//! off where a conversation is small. Not here: times of single calls (`store`).
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use contexture_ir::{NodeId, ResponseId};
use contexture_sessions::{ReadOptions, detect_format, read_sessions};
use contexture_store::{AppendRequest, NewItem, ReadRequest, StateKey, StatePatch};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch_end, item};
use contexture_testdata as testdata;
use rusqlite::Connection;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!(
        "{:<44} {:>9} {:>11} {:>11} {:>6} {:>6} {:>8}",
        "", "items", "bytes", "file", "ratio", "index", "B/item"
    );
    runtime.block_on(async {
        let at = |name: &str| directory.path().join(name);
        let words = short(500, 400);
        grown(
            &at("turns.db"),
            "500 messages of 400 B",
            &[words],
            Empty::Counts,
        )
        .await;
        let words = short(50_000, 200);
        grown(
            &at("words.db"),
            "50,000 messages of 200 B",
            &[words],
            Empty::Counts,
        )
        .await;
        for (name, sessions) in recorded() {
            // Enough of them that the file is more than its empty tables.
            let bytes: usize = sessions.iter().map(|session| size(session)).sum();
            let times = (4 << 20) / bytes + 1;
            let many: Vec<Vec<NewItem>> = (0..times).flat_map(|_| sessions.clone()).collect();
            grown(&at(&format!("{name}.db")), name, &many, Empty::TakenOff).await;
        }
        for nodes in [4, 2] {
            layers(&at(&format!("layers-{nodes}.db")), nodes).await;
        }
        large(&at("large.db")).await;
    });
}

/// Whether the empty database counts.
#[derive(Clone, Copy, PartialEq)]
enum Empty {
    Counts,
    TakenOff,
}

/// Messages of about so many bytes, no two alike.
fn short(count: usize, bytes: usize) -> Vec<NewItem> {
    let words = [
        "deploy", "the", "failing", "build", "on", "a", "branch", "after", "review", "and", "say",
        "which", "tests", "were", "slow", "today",
    ];
    let text = |n: usize| {
        let mut text = format!("{n}");
        let mut state = n as u64;
        while text.len() + 70 < bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let word = words.iter().cycle().nth((state >> 60) as usize).unwrap();
            text = format!("{text} {word}");
        }
        text
    };
    (0..count).map(|n| item(&text(n))).collect()
}

/// The recorded sessions, by kind.
fn recorded() -> Vec<(&'static str, Vec<Vec<NewItem>>)> {
    let of = |name: &str, text: &str| -> Vec<Vec<NewItem>> {
        let options = ReadOptions {
            keep_going: true,
            source_name: name,
        };
        let sessions =
            read_sessions(detect_format(text, name).unwrap().format, text, &options).unwrap();
        let items = |tree: Vec<contexture_sessions::SessionNode>| {
            let tree = tree.into_iter().enumerate();
            tree.map(|(n, node)| {
                let id = NodeId::derive("space", &[name.as_bytes(), &n.to_le_bytes()]);
                NewItem::new(id, &node.item, node.item.to_json(), NOW)
            })
            .collect()
        };
        sessions
            .into_iter()
            .map(|session| items(session.tree))
            .collect()
    };
    let swe = testdata::swe_agent();
    let claude = ["representative_messages", "session_b", "todowrite_examples"].map(|name| {
        (
            name,
            testdata::read_text(&format!("claude-code/{name}.jsonl")),
        )
    });
    vec![
        (
            "SWE-agent",
            swe.iter().flat_map(|(name, text)| of(name, text)).collect(),
        ),
        (
            "Claude Code",
            claude
                .iter()
                .flat_map(|(name, text)| of(name, text))
                .collect(),
        ),
        ("tau-bench", of("tau.json", &testdata::tau_bench())),
    ]
}

fn size(items: &[NewItem]) -> usize {
    items.iter().map(|item| item.json.len()).sum()
}

async fn grown(path: &Path, what: &str, sessions: &[Vec<NewItem>], empty: Empty) {
    let store = Arc::new(SqliteStore::open(path).unwrap());
    let base = if empty == Empty::TakenOff {
        file(path)
    } else {
        0
    };
    let begun = Instant::now();
    for (n, items) in sessions.iter().enumerate() {
        let chat = Chat::start_as(store.clone(), "ada", &format!("chat-{n}")).await;
        for items in items.chunks(4096) {
            chat.append_to_tip("main", items.to_vec()).await.unwrap();
        }
    }
    let took = begun.elapsed();
    drop(store);
    let items: usize = sessions.iter().map(Vec::len).sum();
    let bytes: usize = sessions.iter().map(|session| size(session)).sum();
    let grown = file(path) - base;
    let ratio = |part: u64| part as f64 / bytes as f64;
    println!(
        "{what:<44} {items:>9} {bytes:>11} {grown:>11} {:>6.2} {:>6.2} {:>8.0}   {took:.1?}",
        ratio(grown),
        ratio(index(path)),
        (grown - bytes.min(grown as usize) as u64) as f64 / items as f64,
    );
}

/// 10⁵ nodes, five layers, one of them changes with every response, which is so many nodes. Nodes say
/// which response they are of, as those of a run do.
async fn layers(path: &Path, of_response: usize) {
    let chat = Chat::start(Arc::new(SqliteStore::open(path).unwrap())).await;
    let (nodes, mut bytes) = (100_000, 0);
    for n in 0..nodes / of_response {
        let response = ResponseId::derive("space", &[&n.to_le_bytes()]);
        let items = (0..of_response).map(|m| NewItem {
            response: Some(response),
            ..item(&format!("{n} {m}"))
        });
        let items: Vec<NewItem> = items.collect();
        bytes += size(&items);
        let key = StateKey::new(format!("path/layer-{}", n % 5)).unwrap();
        let request = AppendRequest {
            patch: StatePatch::put_entry(key, 1, format!("value {n}").into_bytes()),
            ..AppendRequest::new(Chat::at_tip("main"), items, NOW)
        };
        chat.append_request(request).await.unwrap();
    }
    drop(chat);
    let beside = file(path) - index(path) - bytes as u64;
    println!(
        "{:<44} {nodes:>9} {bytes:>11} {:>11} {:>6} {:>6} {:>8.0}",
        format!("five layers, a response every {of_response} nodes, no index"),
        file(path) - index(path),
        "",
        "",
        beside as f64 / nodes as f64
    );
}

/// Items that are as large as they may be.
async fn large(path: &Path) {
    let chat = Chat::start(Arc::new(SqliteStore::open(path).unwrap())).await;
    let (_, swe) = recorded().swap_remove(0);
    let text: String = swe.iter().flatten().map(|item| &*item.json).collect();
    for (name, bytes) in [
        ("256 KiB", 256 << 10),
        ("1 MiB", 1 << 20),
        ("15 MiB", 15 << 20),
    ] {
        let mut said = format!("{name} ");
        while said.len() < bytes {
            said.push_str(&text);
        }
        let before = file(path);
        let new = item(&said);
        let begun = Instant::now();
        chat.append_to_tip("main", vec![new]).await.unwrap();
        let written = begun.elapsed();
        let begun = Instant::now();
        chat.read_path(ReadRequest::last_nodes(branch_end("main"), 1))
            .await
            .unwrap();
        let read = begun.elapsed();
        let grown = file(path) - before;
        println!(
            "one item of {name:<32} {bytes:>21} {grown:>11}   append {written:.1?}, read {read:.1?}"
        );
    }
}

/// The size of the file, once its log is empty.
fn file(path: &Path) -> u64 {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    std::fs::metadata(path).unwrap().len()
}

/// The bytes of the word index.
fn index(path: &Path) -> u64 {
    let conn = Connection::open(path).unwrap();
    conn.query_row(
        "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name LIKE 'search%'",
        [],
        |row| row.get::<_, i64>(0),
    )
    .unwrap() as u64
}
