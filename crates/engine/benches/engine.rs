//! What conversations cost: `cargo bench -p contexture-engine`.
//!
//! Plain timing, one figure a line, medians of several runs. "Cold" means a store that was just
//! opened and a handle that has read nothing; the operating system's cache is warm.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_compile::Target;
use contexture_engine::{Engine, ImportOptions};
use contexture_ir::{Fragment, assistant_text, hint, role, user};
use contexture_sessions::{ReadOptions, SessionFormat, read_sessions};
use contexture_store_sqlite::SqliteStore;
use futures_util::future::join_all;

const RUNS: usize = 7;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        import(directory.path()).await;
        resolve(directory.path(), 10_000).await;
        save(directory.path()).await;
        compile(directory.path(), 10_000).await;
    });
}

fn open(path: &Path) -> Engine {
    Engine::new(Arc::new(SqliteStore::open(path).unwrap()))
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{what:<58} {median:>10.2?}  ({least:.2?} … {most:.2?})");
}

/// All 200 tau-bench sessions, parsed and stored, every conversation acknowledged as durable.
async fn import(directory: &Path) {
    let text = contexture_testdata::tau_bench();
    let mut times = Vec::new();
    for run in 0..RUNS {
        let engine = open(&directory.join(format!("import-{run}.db")));
        let start = Instant::now();
        let options = ReadOptions {
            source_name: "tau",
            ..ReadOptions::default()
        };
        let sessions = read_sessions(SessionFormat::TauBench, &text, &options).unwrap();
        let all = ImportOptions::default();
        let done = join_all(sessions.iter().map(|session| engine.import(session, &all))).await;
        times.push(start.elapsed());
        assert_eq!(done.into_iter().filter(Result::is_ok).count(), 200);
    }
    report("import of tau-bench, 200 sessions, synchronous=FULL", times);
}

fn messages(count: usize) -> Vec<Fragment> {
    (0..count)
        .map(|n| {
            let text = format!("message {n}: {}", "some words of a conversation ".repeat(6));
            if n % 2 == 0 {
                user(text)
            } else {
                assistant_text(text)
            }
        })
        .collect()
}

async fn fill(path: &Path, count: usize) {
    let chat = open(path).conversation("c").open().await.unwrap();
    chat.set([role("You are a support agent."), hint("Be brief.")])
        .unwrap();
    let mut rest = messages(count);
    while !rest.is_empty() {
        let tail = rest.split_off(rest.len().min(1_000));
        chat.save(std::mem::replace(&mut rest, tail)).await.unwrap();
    }
}

async fn resolve(directory: &Path, count: usize) {
    let path = directory.join("resolve.db");
    fill(&path, count).await;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let chat = open(&path).conversation("c").open_existing().await.unwrap();
        for times in [&mut cold, &mut warm] {
            let start = Instant::now();
            let resolved = chat.resolve().await.unwrap();
            times.push(start.elapsed());
            assert_eq!(resolved.messages.len(), count);
        }
    }
    report(&format!("resolve of {count} messages, cold"), cold);
    report(&format!("resolve of {count} messages, again"), warm);
}

async fn save(directory: &Path) {
    let chat = open(&directory.join("resolve.db"))
        .conversation("c")
        .open_existing()
        .await
        .unwrap();
    let mut times = Vec::new();
    for _ in 0..RUNS * 5 {
        let start = Instant::now();
        chat.save([user("one more message")]).await.unwrap();
        times.push(start.elapsed());
    }
    report(
        "save of one message at depth 10,000, synchronous=FULL",
        times,
    );
}

async fn compile(directory: &Path, count: usize) {
    let path = directory.join("resolve.db");
    let target = Target::openai_chat("gpt-4.1").window(1_000_000);
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let chat = open(&path).conversation("c").open_existing().await.unwrap();
        for times in [&mut cold, &mut warm] {
            let start = Instant::now();
            let call = chat.compile(&target).await.unwrap();
            times.push(start.elapsed());
            assert!(!call.payload.is_empty());
        }
    }
    report(
        &format!("compile of {count} messages, cold, counted exactly"),
        cold,
    );
    report(
        &format!("compile of {count} messages, again, path read again"),
        warm,
    );
}
