//! What searching costs: `cargo bench -p contexture-store-sqlite --bench search`, or with `-- find` only what finding
//! costs among 100,000 messages.
//!
//! Plain timing, one figure a line, medians. "Without words" are items of the same size in which
//! there is nothing to index, measured in the same run. What the processor did, all threads
//! together, is told beside what takes long: other programs do not move it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_ir::NodeId;
use contexture_store::{
    ConversationPage, ListConversations, NewItem, RedactRequest, SearchRequest, SearchScope, Store,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::NOW;
use contexture_store_testkit::generated_words::{GeneratedWords, Writing, nth_word};

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let at = |name: &str| directory.path().join(name);
        if std::env::args().any(|argument| argument == "find") {
            return find(&at("find.db"), 100_000).await;
        }
        for writing in [
            Writing::Nothing,
            Writing::Latin,
            Writing::Chinese,
            Writing::Characters,
        ] {
            import(&at(&format!("{writing:?}.db")), writing).await;
        }
        for count in [100, 1000, 10_000, 100_000] {
            find(&at(&format!("find-{count}.db")), count).await;
        }
        append(&at("append.db")).await;
        remove(&at("find-100000.db")).await;
    });
}

async fn open(path: &Path, synchronous: Synchronous) -> Chat {
    let options = SqliteOptions {
        synchronous,
        ..SqliteOptions::default()
    };
    Chat::start(Arc::new(SqliteStore::open_with(path, options).unwrap())).await
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let (middle, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{what:<58} {middle:>12.1?}   p99 {p99:.1?}");
}

async fn grow(chat: &Chat, count: usize, writing: Writing) -> usize {
    let mut words = GeneratedWords::default();
    let mut bytes = 0;
    for first in (0..count).step_by(1000) {
        let items = (first..count.min(first + 1000)).map(|n| words.item(n, writing));
        let items: Vec<NewItem> = items.collect();
        bytes += items.iter().map(|item| item.json.len()).sum::<usize>();
        chat.append_to_tip("main", items).await.unwrap();
    }
    bytes
}

/// What the processor did for this program so far; nothing where that cannot be read.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    // Of the program and of the system for it, in hundredths of seconds.
    let ticks = fields
        .skip(12)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

async fn import(path: &Path, writing: Writing) {
    let count = 50_000;
    let chat = open(path, Synchronous::Full).await;
    let (begun, before) = (Instant::now(), cpu());
    let bytes = grow(&chat, count, writing).await;
    let (took, cpu) = (begun.elapsed(), cpu() - before);
    drop(chat);
    let file = std::fs::metadata(path).unwrap().len() as usize;
    let what = format!("import {count} messages, {writing:?}");
    println!(
        "{what:<58} {took:>12.1?}   cpu {cpu:.1?}   {} B a message, file {} B: {:.2} times",
        bytes / count,
        file / count,
        file as f64 / bytes as f64
    );
}

async fn find(path: &Path, count: usize) {
    let chat = open(path, Synchronous::Normal).await;
    grow(&chat, count, Writing::Latin).await;
    for (kind, query) in [
        ("a rare word", nth_word(9_000)),
        ("a frequent word", nth_word(20)),
        ("two words", format!("{} {}", nth_word(20), nth_word(100))),
        ("a phrase", format!("\"{} {}\"", nth_word(2), nth_word(3))),
        ("a beginning", format!("{}*", &nth_word(500)[..3])),
        ("no such word", "xxxx".to_owned()),
    ] {
        for scope in [
            SearchScope::Conversation(chat.id.clone()),
            SearchScope::Owner,
        ] {
            let mut times = Vec::new();
            let mut hits = 0;
            for _ in 0..20 {
                let request = SearchRequest {
                    limit: 20,
                    ..SearchRequest::new(query.clone(), scope.clone())
                };
                let begun = Instant::now();
                let search = chat.store.search().unwrap();
                hits = search
                    .search_nodes(&chat.owner, request)
                    .await
                    .unwrap()
                    .hits
                    .len();
                times.push(begun.elapsed());
            }
            if matches!(scope, SearchScope::Owner) && count < 100_000 {
                continue;
            }
            let place = match scope {
                SearchScope::Owner => "owner",
                _ => "conversation",
            };
            report(
                &format!("find {kind} ({hits} shown), {count} nodes, {place}"),
                &mut times,
            );
        }
    }
}

async fn append(path: &Path) {
    let chat = open(path, Synchronous::Normal).await;
    grow(&chat, 50_000, Writing::Latin).await;
    let mut words = GeneratedWords::with_seed(1);
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..2000 {
        let kinds = [Writing::Nothing, Writing::Latin];
        for (writing, times) in kinds.into_iter().zip(&mut times) {
            let item = words.item(
                1_000_000 + 2 * n + usize::from(writing == Writing::Latin),
                writing,
            );
            let begun = Instant::now();
            chat.append_to_tip("main", vec![item]).await.unwrap();
            times.push(begun.elapsed());
        }
    }
    let [without, with] = &mut times;
    report("append 200 B without words at 50,000, NORMAL", without);
    report("append 200 B with words at 50,000, NORMAL", with);
}

async fn remove(path: &Path) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path).unwrap());
    let owner = contexture_ir::Owner::new("ada").unwrap();
    let list = ListConversations::default();
    let ConversationPage { conversations, .. } =
        store.list_conversations(&owner, list).await.unwrap();
    let id = &conversations[0].id;
    let mut times = Vec::new();
    for n in 0..5_usize {
        let request = RedactRequest {
            nodes: vec![NodeId::derive("bench", &[&n.to_le_bytes()])],
            values: Vec::new(),
            blobs: Vec::new(),
            at_ms: NOW,
        };
        let begun = Instant::now();
        store.redact_content(&owner, id, request).await.unwrap();
        times.push(begun.elapsed());
    }
    report("redact one node of 100,000, terms and all", &mut times);
    let (begun, before) = (Instant::now(), cpu());
    store.delete_conversation(&owner, id).await.unwrap();
    let (took, cpu) = (begun.elapsed(), cpu() - before);
    println!(
        "{:<58} {took:>12.1?}   cpu {cpu:.1?}",
        "delete 100,000 nodes"
    );
}
