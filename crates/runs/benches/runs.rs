//! What runs cost beside the model: `cargo bench -p contexture-runs`.
//!
//! Plain timing, one figure a line, medians. The model answers at once from a script; what is left is the loop: reading
//! what is new, compiling, recording, and the calls. In memory there are no commits; SQLite beside it has them.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_compile::Target;
use contexture_engine::{Conversation, Engine};
use contexture_ir::{Fragment, assistant_text, user};
use contexture_llm::{ModelResponse, ScriptedModel, text_response};
use contexture_runs::{Agent, turn_text};
use contexture_store::{At, MemoryStore, ReadRequest, Store};
use contexture_store_sqlite::SqliteStore;
use contexture_wire::Format;

const ITEMS: usize = 10_000;
const TURNS: usize = 40;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sqlite = SqliteStore::open(directory.path().join("bench.db")).unwrap();
    runtime.block_on(async {
        measure("in memory", Arc::new(MemoryStore::new())).await;
        measure("SQLite, synchronous=FULL", Arc::new(sqlite)).await;
    });
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{what:<66} {median:>10.2?}  ({least:.2?} … {most:.2?})");
}

fn messages() -> Vec<Fragment> {
    let message = |n: usize| match n % 2 {
        0 => user(format!("message {n}: some words of a conversation")),
        _ => assistant_text(format!("message {n}: some words of an answer")),
    };
    (0..ITEMS).map(message).collect()
}

async fn measure(where_: &str, store: Arc<dyn Store>) {
    let engine = Engine::new(store);
    let start = Instant::now();
    let chat = engine.conversation("c").open().await.unwrap();
    let mut rest = messages();
    while !rest.is_empty() {
        let tail = rest.split_off(rest.len().min(1_000));
        chat.save(std::mem::replace(&mut rest, tail)).await.unwrap();
    }
    let whole = ReadRequest::whole(At::Branch(chat.branch()));
    let page = engine.store().read(chat.owner(), chat.id(), whole).await;
    assert!(!page.unwrap().nodes.is_empty());
    let what = format!("append and read {ITEMS} items, {where_}");
    report(&what, vec![start.elapsed()]);
    turns(where_, &chat).await;
    checkpoints(where_, &chat).await;
}

async fn turns(where_: &str, chat: &Conversation) {
    for (window, call) in [
        (1_000_000, "all of them in the call"),
        (8_000, "a window of 8,000 tokens"),
    ] {
        let model = Arc::new(ScriptedModel::by(|_| {
            Ok(ModelResponse::new(text_response(
                Format::OpenAiChat,
                "Well.",
            )))
        }));
        let target = Target::openai_chat("gpt-4.1").window(window);
        let agent = Agent::new("bench", model, target.clone());
        turn_text(chat, &agent, "Warm up.").await.unwrap();
        let (mut whole, mut compiles) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let start = Instant::now();
            turn_text(chat, &agent, "And?").await.unwrap();
            whole.push(start.elapsed());
            let start = Instant::now();
            chat.compile(&target).await.unwrap();
            compiles.push(start.elapsed());
        }
        report(&format!("a turn at {ITEMS} items, {call}, {where_}"), whole);
        report(&format!("  of it the compile, {call}, {where_}"), compiles);
    }
}

async fn checkpoints(where_: &str, chat: &Conversation) {
    let head = chat.head().await.unwrap().unwrap();
    let (mut snapshots, mut restores) = (Vec::new(), Vec::new());
    for n in 0..TURNS {
        let start = Instant::now();
        chat.checkpoint(&format!("c{n}")).await.unwrap();
        snapshots.push(start.elapsed());
        let start = Instant::now();
        chat.rewind_to(head).await.unwrap();
        restores.push(start.elapsed());
    }
    report(
        &format!("a checkpoint at {ITEMS} items, {where_}"),
        snapshots,
    );
    report(&format!("going back to a node, {where_}"), restores);
}
