//! What searching costs among many messages: `cargo xtask bench store-postgres/search`.
//!
//! One conversation of generated messages, 100,000 or as many as the argument says, in the database that
//! `CONTEXTURE_TEST_POSTGRES` names; `cargo xtask bench` starts a server where it names none. A row has the median and the
//! 99th percentile of 100 searches in the conversation and of 100 in all of its owner's. `--sqlite` measures a SQLite file
//! in the same way.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_store::{SearchRequest, SearchScope, Store};
use contexture_store_postgres::{PostgresStore, migrate};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::generated_words::{GeneratedWords, Writing, nth_word};

const SEARCHES: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.iter().find_map(|argument| argument.parse().ok());
    let count = count.unwrap_or(100_000);
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        if arguments.iter().any(|argument| argument == "--sqlite") {
            let store = SqliteStore::open(directory.path().join("search.db")).unwrap();
            measure("sqlite", Arc::new(store), count).await;
        } else {
            let address = std::env::var("CONTEXTURE_TEST_POSTGRES").unwrap();
            migrate(&address).await.unwrap();
            let store = PostgresStore::open(&address).await.unwrap();
            measure("postgresql", Arc::new(store), count).await;
        }
    });
}

async fn measure(name: &str, store: Arc<dyn Store>, count: usize) {
    let chat = Chat::start(store).await;
    let mut words = GeneratedWords::default();
    let begun = Instant::now();
    for first in (0..count).step_by(1000) {
        let items = (first..count.min(first + 1000)).map(|n| words.item(n, Writing::Latin));
        chat.append_to_tip("main", items.collect()).await.unwrap();
    }
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    println!("{name}: {count} messages stored, {rate:.0} a second");
    println!(
        "{:<28}{:>24}{:>24}",
        "", "conversation p50, p99", "owner p50, p99"
    );
    for (kind, query) in [
        ("a rare word", nth_word(9_000)),
        ("a frequent word", nth_word(20)),
        ("a word of most messages", nth_word(0)),
        ("two words", format!("{} {}", nth_word(20), nth_word(100))),
        (
            "a question of five words",
            [3, 40, 200, 900, 4_000].map(nth_word).join(" "),
        ),
        ("a phrase", format!("\"{} {}\"", nth_word(2), nth_word(3))),
        ("a beginning", format!("{}*", &nth_word(500)[..3])),
        ("no such word", "xxxx".to_owned()),
    ] {
        let mut line = format!("{kind:<28}");
        for scope in [
            SearchScope::Conversation(chat.id.clone()),
            SearchScope::Owner,
        ] {
            let mut times = search_times(&chat, &query, &scope).await;
            times.sort_unstable();
            let (middle, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            line += &format!("{:>12.1?}{:>12.1?}", middle, p99);
        }
        println!("{line}");
    }
}

async fn search_times(chat: &Chat, query: &str, scope: &SearchScope) -> Vec<Duration> {
    let search = chat.store.search().unwrap();
    let mut times = Vec::with_capacity(SEARCHES);
    for _ in 0..SEARCHES {
        let request = SearchRequest::new(query, scope.clone());
        let begun = Instant::now();
        search.search_nodes(&chat.owner, request).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}
