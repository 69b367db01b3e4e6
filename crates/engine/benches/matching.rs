//! What a client costs that sends its whole history again: `cargo bench -p contexture-engine --bench matching`.
//!
//! Plain timing, one figure a line, medians. The history is hashed whole, looked up once, and what is new is appended: the
//! first row is the hashing alone. Reading the request's JSON is not in it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_engine::{Engine, IngestRequest, MatchKind};
use contexture_ir::{HistoryHasher, Item, Message, Role, Transcript};
use contexture_store_sqlite::SqliteStore;

const RUNS: usize = 9;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for items in [100, 1_000, 10_000] {
            hashing(items);
            let file = directory.path().join(format!("{items}.db"));
            let durable = Engine::new(Arc::new(SqliteStore::open(file).unwrap()));
            turns("in memory", Engine::in_memory(), items).await;
            turns("SQLite, synchronous=FULL", durable, items).await;
        }
    });
}

fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{what:<66} {median:>10.2?}  ({least:.2?} … {most:.2?})");
    median
}

fn message(n: usize) -> Item {
    let role = match n % 2 {
        0 => Role::User,
        _ => Role::Assistant,
    };
    let words = "some words of a history that is sent again and again ".repeat(4);
    Item::Message(Message::text(role, format!("message {n}: {words}")))
}

fn hashing(items: usize) {
    let history: Vec<Item> = (0..items).map(message).collect();
    let bytes: usize = history.iter().map(|item| item.text().len()).sum();
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let mut chain = HistoryHasher::default();
        history.iter().for_each(|item| chain.push_item(item));
        std::hint::black_box(chain.current_hash());
        times.push(start.elapsed());
    }
    let median = report(&format!("hashing a history of {items} items"), times);
    let rate = bytes as f64 / 1e6 / median.as_secs_f64();
    println!("  {rate:.0} MB/s of text");
}

/// Each time the whole history with one more question; the answer is recorded between two.
async fn turns(where_: &str, engine: Engine, items: usize) {
    let owner = contexture_ir::Owner::local();
    let mut history = Transcript {
        model: Some("gpt-4.1".to_owned()),
        items: (0..items | 1).map(message).collect(),
        ..Transcript::default()
    };
    let start = Instant::now();
    let mut ingested = engine
        .ingest(&owner, IngestRequest::new(&history))
        .await
        .unwrap();
    report(
        &format!("the first {items} items, {where_}"),
        vec![start.elapsed()],
    );
    let (mut asks, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let answer = Transcript {
            model: history.model.clone(),
            items: vec![message(history.items.len())],
            ..Transcript::default()
        };
        let start = Instant::now();
        ingested.record(&answer).await.unwrap();
        answers.push(start.elapsed());
        history.items.extend(answer.items);
        history.items.push(message(history.items.len()));
        let start = Instant::now();
        ingested = engine
            .ingest(&owner, IngestRequest::new(&history))
            .await
            .unwrap();
        asks.push(start.elapsed());
        assert_eq!(ingested.matched, MatchKind::Prefix);
        assert_eq!(ingested.appended.len(), 1);
    }
    report(
        &format!("one more question behind {items} items, {where_}"),
        asks,
    );
    report(&format!("  its answer, {where_}"), answers);
}
