//! How the store's costs grow with a conversation: `cargo xtask bench curves`.
//!
//! One line an operation and backend, one column a size; each figure is the median of one run on one
//! machine. PostgreSQL is measured in the database that `CONTEXTURE_TEST_POSTGRES` names, which gets
//! our tables; `cargo xtask bench` starts a server where it names none. With `--peers` other
//! projects are measured beside ours.
//!
//! `--quick` leaves out the largest size; `-- 1000000` measures that size too.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_store::{
    Activation, BranchLabel, ListConversations, NewBranch, NewItem, ReadRequest, RefChange,
    SearchRequest, SearchScope, Store,
};
use contexture_store_postgres::{PostgresStore, migrate};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch_end, item};

const BATCH: usize = 1_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes = vec![100, 1_000, 10_000, 100_000];
    if arguments.iter().any(|a| a == "--quick") {
        sizes.pop();
    }
    sizes.extend(arguments.iter().filter_map(|a| a.parse::<usize>().ok()));
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for synchronous in [Synchronous::Full, Synchronous::Normal] {
            let path = directory.path().join(format!("{synchronous:?}.db"));
            let options = SqliteOptions {
                synchronous,
                ..SqliteOptions::default()
            };
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open_with(&path, options).unwrap());
            curves(
                &format!("sqlite {synchronous:?}").to_lowercase(),
                store,
                &sizes,
            )
            .await;
        }
        if let Ok(address) = std::env::var("CONTEXTURE_TEST_POSTGRES") {
            migrate(&address).await.unwrap();
            let store = PostgresStore::open(&address).await.unwrap();
            curves("postgresql", Arc::new(store), &sizes).await;
        }
        space(&directory.path().join("space.db")).await;
    });
}

/// A message of about 200 bytes.
fn small(n: usize) -> NewItem {
    item(&format!("{n} {}", "words of a message ".repeat(6)))
}

/// The operations, in the order of their lines.
const LINES: [&str; 11] = [
    "append 1 of 200 B",
    "fill, per message",
    "read last 200",
    "read whole path",
    "branch in the middle",
    "list 100 branches",
    "list conversations",
    "search a rare word",
    "search a frequent word, first 20",
    "first append after a branch",
    "delete the conversation",
];

async fn curves(backend: &str, store: Arc<dyn Store>, sizes: &[usize]) {
    let mut table = vec![Vec::new(); LINES.len()];
    for &size in sizes {
        let figures = measure(Arc::clone(&store), size).await;
        for (line, figure) in table.iter_mut().zip(figures) {
            line.push(figure);
        }
    }
    print!("{:<48}", backend);
    sizes.iter().for_each(|size| print!("{size:>12}"));
    println!();
    for (line, figures) in LINES.iter().zip(&table) {
        print!("  {line:<46}");
        for figure in figures {
            match figure {
                Some(figure) => print!("{:>12}", format!("{figure:.1?}")),
                None => print!("{:>12}", "–"),
            }
        }
        println!();
    }
}

async fn median(runs: usize, mut work: impl AsyncFnMut(usize)) -> Option<Duration> {
    let mut times = Vec::with_capacity(runs);
    for run in 0..runs {
        let begun = Instant::now();
        work(run).await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Some(times[times.len() / 2])
}

async fn measure(store: Arc<dyn Store>, size: usize) -> [Option<Duration>; LINES.len()] {
    let chat = Chat::start_as(store, "ada", &format!("of-{size}")).await;
    let begun = Instant::now();
    for first in (0..size).step_by(BATCH) {
        let items = (first..size.min(first + BATCH)).map(small).collect();
        chat.append_to_tip("main", items).await.unwrap();
    }
    let filled = begun.elapsed() / u32::try_from(size).unwrap();
    let append = median(101, async |n| {
        let items = vec![small(10_000_000 + n)];
        chat.append_to_tip("main", items).await.unwrap();
    })
    .await;
    chat.append_to_tip("main", vec![item("the only zebra here")])
        .await
        .unwrap();
    let length = size + 102;
    let last = median(41, async |_| {
        let page = chat
            .read_path(ReadRequest::last_nodes(branch_end("main"), 200))
            .await
            .unwrap();
        assert_eq!(page.nodes.len(), length.min(200));
    })
    .await;
    let whole = median(if size > 50_000 { 3 } else { 11 }, async |_| {
        let page = chat
            .read_path(ReadRequest::whole_path(branch_end("main")))
            .await
            .unwrap();
        assert_eq!(page.nodes.len(), length);
    })
    .await;
    let middle = small(size / 2).id;
    let branch = median(100, async |n| {
        let label = BranchLabel::Named(format!("b{n}").parse().unwrap());
        let new = NewBranch {
            base: Some(middle),
            label,
            activate: Activation::Keep,
        };
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    })
    .await;
    let first = median(100, async |n| {
        let items = vec![small(20_000_000 + n)];
        chat.append_to_tip(&format!("b{n}"), items).await.unwrap();
    })
    .await;
    let refs = median(41, async |_| {
        let refs = chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
        assert_eq!(refs.branches.len(), 101);
    })
    .await;
    let listed = median(41, async |_| {
        let list = ListConversations::default();
        chat.store
            .list_conversations(&chat.owner, list)
            .await
            .unwrap();
    })
    .await;
    let rare = search(&chat, "zebra").await;
    let frequent = search(&chat, "message").await;
    let begun = Instant::now();
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    let deleted = begun.elapsed();
    [
        append,
        Some(filled),
        last,
        whole,
        branch,
        refs,
        listed,
        rare,
        frequent,
        first,
        Some(deleted),
    ]
}

async fn search(chat: &Chat, words: &str) -> Option<Duration> {
    let search = chat.store.search()?;
    let scope = SearchScope::Conversation(chat.id.clone());
    median(21, async |_| {
        let request = SearchRequest::new(words, scope.clone());
        let found = search.search_nodes(&chat.owner, request).await.unwrap();
        assert!(!found.hits.is_empty());
    })
    .await
}

/// What 500 turns of 400 bytes take on disk.
async fn space(path: &Path) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path).unwrap());
    let chat = Chat::start(store).await;
    let mut bytes = 0;
    for n in 0..500 {
        let item = item(&format!("{n} {}", "words of a turn ".repeat(20)));
        bytes += item.json.len();
        chat.append_to_tip("main", vec![item]).await.unwrap();
    }
    drop(chat);
    let file = std::fs::metadata(path).unwrap().len();
    println!("500 turns of 400 B: {bytes} B of items, {file} B on disk");
}
