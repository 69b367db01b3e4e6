//! Retrieval without a model, how good and how fast: `cargo xtask bench retrieval`.
//!
//! Recall is how often the text in which a fact stood first is among the first ten or twenty that the
//! layer's tool finds, for facts that stand in one of 200 recorded sessions only. Speed is measured
//! at 100,000 items: these sessions and copies of them with other numbers, identifiers and names, all of
//! one owner. Without its facts a question fits every copy alike, so there only the other wording is
//! asked for recall. Medians of one run on one machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, fails by panicking, and uses some of what the tests do"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_engine::Engine;
use contexture_store::{MatchMode, SearchRequest, SearchScope};
use contexture_store_sqlite::SqliteStore;
use contexture_testdata::tau_bench;
use serde_json::Value;

#[path = "../tests/it/recalling.rs"]
mod recalling;

use recalling::{Library, Wording, keep};

const ITEMS: usize = 100_000;
const RUNS: usize = 100;

fn main() {
    let items = match std::env::args().any(|argument| argument == "--quick") {
        true => 0,
        false => ITEMS,
    };
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let path = directory.path().join("sqlite.db");
        measure(open(&path), items).await;
    });
}

fn open(path: &Path) -> Engine {
    Engine::new(Arc::new(SqliteStore::open(path).unwrap()))
}

async fn measure(engine: Engine, items: usize) {
    let library = Library::of(engine.clone(), usize::MAX).await;
    let texts = count(&engine).await;
    recall(&library, texts, &[Wording::AsSaid, Wording::Without]).await;
    speed(&engine, &library, texts).await;
    let copies = items / texts;
    for copy in 1..=copies {
        let sessions = changed(&tau_bench(), copy);
        keep(&engine, &sessions, &format!("tau-{copy}"), usize::MAX).await;
    }
    if copies > 0 {
        let texts = count(&engine).await;
        recall(&library, texts, &[Wording::AsSaid]).await;
        speed(&engine, &library, texts).await;
    }
}

async fn recall(library: &Library, texts: usize, wordings: &[Wording]) {
    println!("recall among {texts} items          asked       @10       @20");
    for wording in wordings {
        let recall = library.recall(*wording).await;
        let share = |found: usize| 100.0 * found as f64 / recall.asked as f64;
        println!(
            "  {:<32}{:>8}{:>9.1}%{:>9.1}%",
            format!("{wording:?}"),
            recall.asked,
            share(recall.at_10),
            share(recall.at_20)
        );
    }
}

async fn speed(engine: &Engine, library: &Library, texts: usize) {
    println!("speed among {texts} items            median       p90");
    // Facts of three questions that are far apart.
    let facts: Vec<&str> = library
        .questions
        .iter()
        .filter_map(|question| {
            question
                .text
                .split_whitespace()
                .find(|word| word.len() > 4 && word.contains(|c: char| c.is_ascii_digit()))
        })
        .collect();
    let owner = library.now.owner();
    for terms in 1..=3 {
        let mut times = Vec::new();
        for run in 0..RUNS {
            let query: Vec<&str> = (0..terms)
                .map(|n| facts[(run * 7 + n * 31) % facts.len()])
                .collect();
            let request = SearchRequest {
                words: MatchMode::Any,
                ..SearchRequest::new(query.join(" "), SearchScope::Owner)
            };
            let begun = Instant::now();
            let page = engine.search(owner, request).await.unwrap();
            times.push(begun.elapsed());
            assert!(!page.hits.is_empty(), "{query:?}");
        }
        report(&format!("{terms} rare words"), times);
    }
    for wording in [Wording::AsSaid, Wording::Without] {
        let mut times = Vec::new();
        for question in library
            .questions
            .iter()
            .step_by(1 + library.questions.len() / RUNS)
        {
            let asked = wording.of(question);
            let begun = Instant::now();
            library.ask(asked).await;
            times.push(begun.elapsed());
        }
        report(&format!("a whole question, {wording:?}"), times);
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (median, p90) = (times[times.len() / 2], times[times.len() * 9 / 10]);
    println!("  {what:<32}{median:>10.1?}{p90:>10.1?}");
}

/// The texts of the sessions with other numbers, identifiers and names.
fn changed(sessions: &str, copy: usize) -> String {
    let mut sessions: Value = serde_json::from_str(sessions).unwrap();
    for session in sessions.as_array_mut().unwrap() {
        for message in session["traj"].as_array_mut().unwrap() {
            if let Some(content) = message["content"].as_str() {
                message["content"] = marked(content, copy).into();
            }
        }
    }
    sessions.to_string()
}

fn marked(text: &str, copy: usize) -> String {
    let separates = |c: char| !c.is_alphanumeric() && c != '_';
    let words = text.split_inclusive(separates);
    let marked = words.map(|piece| {
        let word = piece.trim_end_matches(separates);
        let tells =
            word.starts_with(char::is_uppercase) || word.contains(|c: char| c.is_ascii_digit());
        match word.len() > 2 && tells {
            true => format!("{word}q{copy}{}", &piece[word.len()..]),
            false => piece.to_owned(),
        }
    });
    marked.collect()
}

/// How many items are stored.
async fn count(engine: &Engine) -> usize {
    let mut count = 0;
    let mut list = contexture_store::ListConversations::default();
    loop {
        let owner = engine
            .conversation("now")
            .open()
            .await
            .unwrap()
            .owner()
            .clone();
        let page = engine
            .store()
            .list_conversations(&owner, list.clone())
            .await
            .unwrap();
        count += page
            .conversations
            .iter()
            .map(|one| usize::try_from(one.nodes).unwrap())
            .sum::<usize>();
        let Some(next) = page.next else { return count };
        list.after = Some(next);
    }
}
