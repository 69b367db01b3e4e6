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
use contexture_ir::{Fragment, Item, Message, NodeId, Role, assistant_text, user};
use contexture_models::{
    Model, ModelError, ModelRequest, ModelResponse, ScriptedModel, text_response,
};
use contexture_runs::{Agent, Run, run_turn_with_text};
use contexture_store::{AppendPoint, AppendRequest, MemoryStore, PathEnd, ReadRequest, Store};
use contexture_store_sqlite::SqliteStore;
use contexture_wire::Format;
use tokio::sync::Semaphore;

const ITEMS: usize = 10_000;
const TURNS: usize = 40;
const LOGS: usize = 9;
/// Durable steps of one run, and how many of them make a figure.
const STEPS: usize = 10_000;
const STEPS_SHOWN: usize = 200;
/// Runs at once in this process.
const RUNS: usize = 1_000;

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

fn item(n: usize) -> Item {
    let (role, what) = match n % 2 {
        0 => (Role::User, "a conversation"),
        _ => (Role::Assistant, "an answer"),
    };
    Item::Message(Message::text(
        role,
        format!("message {n}: some words of {what}"),
    ))
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
    for batch in [1, 100, 1_000] {
        logs(where_, &engine, batch).await;
    }
    let chat = saved(where_, &engine).await;
    turns(where_, &chat).await;
    checkpoints(where_, &chat).await;
    steps(where_, &engine).await;
    crowd(where_, &engine).await;
}

/// The log of items alone: each comes with its id, is made a node (its JSON, its hashes) and appended; all are read once
/// at the end.
async fn logs(where_: &str, engine: &Engine, batch: usize) {
    let items: Vec<Item> = (0..ITEMS).map(item).collect();
    let (mut both, mut reads) = (Vec::new(), Vec::new());
    for n in 0..LOGS {
        let chat = engine.conversation(format!("log-{batch}-{n}"));
        let chat = chat.open().await.unwrap();
        let (store, owner, id) = (engine.store(), chat.owner(), chat.id());
        let branch = chat.branch();
        let id_of = |n: usize| NodeId::derive("bench", &[&n.to_le_bytes()]);
        let ids: Vec<NodeId> = (0..ITEMS).map(id_of).collect();
        let start = Instant::now();
        for (items, ids) in items.chunks(batch).zip(ids.chunks(batch)) {
            let new = items.iter().zip(ids);
            let new = new.map(|(item, id)| chat.new_item(*id, item, None));
            let at = AppendPoint::Tip {
                branch: branch.clone(),
            };
            let request = AppendRequest::new(at, new.collect(), 0);
            store.append_items(owner, id, request).await.unwrap();
        }
        let read = Instant::now();
        let whole = ReadRequest::whole_path(PathEnd::Branch(branch));
        let page = store.read_path(owner, id, whole).await.unwrap();
        reads.push(read.elapsed());
        both.push(start.elapsed());
        assert_eq!(page.nodes.len(), ITEMS);
    }
    let what = format!("append {ITEMS} items, {batch} a call, and read all, {where_}");
    report(&what, both);
    report(&format!("  of it the read, {where_}"), reads);
}

/// The same through messages: what is new, what is the same, ids, layers.
async fn saved(where_: &str, engine: &Engine) -> Conversation {
    let chat = engine.conversation("c").open().await.unwrap();
    let mut rest = messages();
    let start = Instant::now();
    while !rest.is_empty() {
        let tail = rest.split_off(rest.len().min(1_000));
        chat.save(std::mem::replace(&mut rest, tail)).await.unwrap();
    }
    let whole = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let page = engine
        .store()
        .read_path(chat.owner(), chat.id(), whole)
        .await;
    assert_eq!(page.unwrap().nodes.len(), ITEMS);
    let what = format!("save {ITEMS} messages, 1,000 a call, and read all, {where_}");
    report(&what, vec![start.elapsed()]);
    chat
}

async fn turns(where_: &str, chat: &Conversation) {
    for (window, call) in [
        (1_000_000, "all of them in the call"),
        (8_000, "a window of 8,000 tokens"),
    ] {
        let model = Arc::new(ScriptedModel::with_fn(|_| {
            Ok(ModelResponse::new(text_response(
                Format::OpenAiChat,
                "Well.",
            )))
        }));
        let target = Target::openai_chat("gpt-4.1").window(window);
        let agent = Agent::new("bench", model, target.clone());
        run_turn_with_text(chat, &agent, "Warm up.").await.unwrap();
        let (mut whole, mut compiles) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let start = Instant::now();
            run_turn_with_text(chat, &agent, "And?").await.unwrap();
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

/// Durable steps of one run: the last must cost what the first ones do. Beside them an append of one item, which a step needs.
async fn steps(where_: &str, engine: &Engine) {
    let chat = engine.conversation("steps").open().await.unwrap();
    let model = Arc::new(ScriptedModel::new([]));
    let agent = Agent::new("bench", model, Target::openai_chat("gpt-4.1"));
    let mut run = Run::begin(&chat, &agent, [item(0)]).await.unwrap();
    let mut times = Vec::with_capacity(STEPS);
    for n in 0..STEPS {
        let start = Instant::now();
        let work = || async { Ok::<_, std::io::Error>(n) };
        run.run_durable_step("step", work).await.unwrap();
        times.push(start.elapsed());
    }
    let last = times.split_off(STEPS - STEPS_SHOWN);
    times.truncate(STEPS_SHOWN);
    report(
        &format!("a step, of the first {STEPS_SHOWN}, {where_}"),
        times,
    );
    report(
        &format!("a step, of the last {STEPS_SHOWN} of {STEPS}, {where_}"),
        last,
    );
    let (store, mut appends) = (engine.store(), Vec::new());
    let other = engine.conversation("appends").open().await.unwrap();
    for n in 0..STEPS_SHOWN {
        let id = NodeId::derive("bench append", &[&n.to_le_bytes()]);
        let at = AppendPoint::Tip {
            branch: other.branch(),
        };
        let start = Instant::now();
        let request = AppendRequest::new(at, vec![other.new_item(id, &item(n), None)], 0);
        store
            .append_items(other.owner(), other.id(), request)
            .await
            .unwrap();
        appends.push(start.elapsed());
    }
    report(&format!("  an append of one item, {where_}"), appends);
}

/// A model that says how many wait for its answer, and answers once it may.
#[derive(Debug)]
struct Gate {
    asked: Semaphore,
    may_answer: Semaphore,
}

#[async_trait::async_trait]
impl Model for Gate {
    async fn answer(&self, _: ModelRequest) -> Result<ModelResponse, ModelError> {
        self.asked.add_permits(1);
        let _permit = self.may_answer.acquire().await;
        let body = text_response(Format::OpenAiChat, "Well.");
        Ok(ModelResponse::new(body))
    }
}

/// Many runs in one process, each in a conversation of its own: what each takes while its model works, and how long all of them
/// take from their question to their end.
async fn crowd(where_: &str, engine: &Engine) {
    let gate = Arc::new(Gate {
        asked: Semaphore::new(0),
        may_answer: Semaphore::new(0),
    });
    let agent = Agent::new(
        "bench",
        Arc::clone(&gate) as _,
        Target::openai_chat("gpt-4.1"),
    );
    let before = resident_bytes();
    let start = Instant::now();
    let mut turns = Vec::with_capacity(RUNS);
    for n in 0..RUNS {
        let (engine, agent) = (engine.clone(), agent.clone());
        turns.push(tokio::spawn(async move {
            let chat = engine.conversation(format!("crowd-{n}"));
            let chat = chat.open().await.unwrap();
            run_turn_with_text(&chat, &agent, "And?").await.unwrap();
        }));
    }
    let all = u32::try_from(RUNS).unwrap();
    gate.asked.acquire_many(all).await.unwrap().forget();
    let asked = start.elapsed();
    let each = resident_bytes().saturating_sub(before) / RUNS as u64;
    gate.may_answer.add_permits(RUNS);
    for turn in turns {
        turn.await.unwrap();
    }
    let what = format!("{RUNS} runs at once, until all have asked, {where_}");
    report(&what, vec![asked]);
    report(
        &format!("  until all have ended, {where_}"),
        vec![start.elapsed()],
    );
    println!(
        "  memory of each while its model works, {where_}: {} kB",
        each / 1_000
    );
}

/// The memory of this process that is in use, in bytes; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}
