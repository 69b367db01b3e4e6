//! How much of the evidence for a question search finds: `cargo xtask bench recall PATH`.
//!
//! `PATH` is a JSON file in LoCoMo's form, or a folder of such files: conversations in sessions, and
//! questions with the ids of the turns that hold the answer. The data is not part of the repository;
//! without a path a generated set of the same form is measured. Each turn is a message with the
//! speaker's name before the text, at the time of its session. Each question is asked as it is.
//!
//! A row has the mean share of a question's evidence among the first 10 and 20 hits, the share of
//! questions with any, and the mean share of sessions among those of the first ten hits, on one
//! conversation and on all conversations of the owner; and the time of a search. The last column
//! says whether the ids of all pages are those of the first store.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_ir::NodeId;
use contexture_store::{MemoryStore, NewItem, SearchRequest, SearchScope, Store};
use contexture_store_postgres::{PostgresStore, migrate};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;

#[path = "../tests/it/dialogues.rs"]
mod dialogues;

use dialogues::{Dialogue, generate_dialogues, parse_dialogues};

/// Results of one store and one scope.
#[derive(Default)]
struct Figures {
    questions: usize,
    mean: [f64; 2],
    any: [usize; 2],
    sessions: f64,
    times: Vec<Duration>,
    pages: Vec<Vec<NodeId>>,
}

fn main() {
    let path = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let dialogues = match path {
        Some(path) => load_dialogues(Path::new(&path)),
        None => {
            println!("no PATH: a generated set");
            generate_dialogues(5)
        }
    };
    println!(
        "{:<24}{:>8}{:>9}{:>9}{:>8}{:>8}{:>10}{:>9}{:>9}  order",
        "", "asked", "mean@10", "mean@20", "any@10", "any@20", "sessions", "p50 ms", "p99 ms"
    );
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let sqlite = SqliteStore::open(directory.path().join("recall.db")).unwrap();
        let mut stores: Vec<(&str, Arc<dyn Store>)> = vec![
            ("memory", Arc::new(MemoryStore::default())),
            ("sqlite", Arc::new(sqlite)),
        ];
        if let Ok(address) = std::env::var("CONTEXTURE_TEST_POSTGRES") {
            migrate(&address).await.unwrap();
            let store = PostgresStore::open(&address).await.unwrap();
            stores.push(("postgresql", Arc::new(store)));
        }
        // `--sqlite` measures one store only.
        let named = |name: &str| std::env::args().any(|argument| argument == format!("--{name}"));
        if stores.iter().any(|(name, _)| named(name)) {
            stores.retain(|(name, _)| named(name));
        }
        measure_stores(&stores, &dialogues).await;
    });
}

async fn measure_stores(stores: &[(&str, Arc<dyn Store>)], dialogues: &[Dialogue]) {
    let mut first: [Option<Vec<Vec<NodeId>>>; 2] = [None, None];
    for (name, store) in stores {
        let mut chats = Vec::new();
        let begun = Instant::now();
        for dialogue in dialogues {
            let chat = Chat::start_as(Arc::clone(store), "recall", &dialogue.name).await;
            let items: Vec<NewItem> = dialogue.items().collect();
            for items in items.chunks(500) {
                chat.append_to_tip("main", items.to_vec()).await.unwrap();
            }
            chats.push(chat);
        }
        let turns: usize = dialogues.iter().map(|dialogue| dialogue.turns.len()).sum();
        let rate = turns as f64 / begun.elapsed().as_secs_f64();
        for (scope, first) in ["conversation", "owner"].into_iter().zip(&mut first) {
            let figures = measure(&chats, dialogues, scope == "owner").await;
            let order = match first {
                Some(first) if *first == figures.pages => "same",
                Some(_) => "DIFFERENT",
                None => "",
            };
            print_row(&format!("{name}, {scope}"), &figures, order);
            first.get_or_insert(figures.pages);
        }
        println!("  {turns} turns stored, {rate:.0} a second");
    }
}

async fn measure(chats: &[Chat], dialogues: &[Dialogue], owner: bool) -> Figures {
    let mut figures = Figures::default();
    for (chat, dialogue) in chats.iter().zip(dialogues) {
        let search = chat.store.search().unwrap();
        for question in &dialogue.questions {
            let scope = match owner {
                true => SearchScope::Owner,
                false => SearchScope::Conversation(chat.id.clone()),
            };
            let request = SearchRequest::new(question.text.clone(), scope);
            let begun = Instant::now();
            let page = search.search_nodes(&chat.owner, request).await.unwrap();
            figures.times.push(begun.elapsed());
            let found: Vec<NodeId> = page.hits.iter().map(|hit| hit.node).collect();
            let wanted = question.evidence.len() as f64;
            figures.questions += 1;
            for (place, k) in [10, 20].into_iter().enumerate() {
                let first = found.get(..k).unwrap_or(&found);
                let hits = question
                    .evidence
                    .iter()
                    .filter(|node| first.contains(node))
                    .count();
                figures.mean[place] += hits as f64 / wanted;
                figures.any[place] += usize::from(hits > 0);
            }
            let first = found.get(..10).unwrap_or(&found);
            figures.sessions += dialogue.session_share(&question.evidence, first);
            figures.pages.push(found);
        }
    }
    figures
}

fn print_row(name: &str, figures: &Figures, order: &str) {
    let asked = figures.questions as f64;
    let mut times = figures.times.clone();
    times.sort_unstable();
    let time = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1000.0;
    println!(
        "{name:<24}{asked:>8}{:>9.3}{:>9.3}{:>8.3}{:>8.3}{:>10.3}{:>9.2}{:>9.2}  {order}",
        figures.mean[0] / asked,
        figures.mean[1] / asked,
        figures.any[0] as f64 / asked,
        figures.any[1] as f64 / asked,
        figures.sessions / asked,
        time(50),
        time(99),
    );
}

fn load_dialogues(path: &Path) -> Vec<Dialogue> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![path.to_owned()],
    };
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    assert!(!files.is_empty(), "{}: no JSON file", path.display());
    let read = |file: &PathBuf| std::fs::read_to_string(file).unwrap();
    files
        .iter()
        .flat_map(|file| parse_dialogues(&read(file)))
        .collect()
}
