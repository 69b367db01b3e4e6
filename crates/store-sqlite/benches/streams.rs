//! What streams cost: `cargo bench -p contexture-store-sqlite --bench streams`.
//!
//! Medians and 99th percentiles of single calls. Figures that are compared with each other are
//! measured alternately in the same run, because the time of a sync varies more than the code.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_ir::StreamId;
use contexture_store::{
    AppendChunks, AppendRequest, MemoryStore, Store, StreamClaim, StreamTail, TailEvent,
    TailOptions,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item};
use futures_util::future::join_all;

/// Of 24 bytes, as a model sends them.
const CHUNK: &[u8; 24] = b"a few words of an answer";

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let at = |name: &str| directory.path().join(name);
        appends(&at("full.db"), &at("normal.db")).await;
        crowd(&at("crowd-full.db"), Synchronous::Full).await;
        crowd(&at("crowd-normal.db"), Synchronous::Normal).await;
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
        follow("in memory", &memory, &memory, None).await;
        let path = at("follow.db");
        let writer = open(&path, Synchronous::Full);
        follow("one process", &writer, &writer, None).await;
        let reader = open(&path, Synchronous::Full);
        for poll in [10, 100] {
            let name = format!("another process, every {poll} ms");
            follow(&name, &writer, &reader, Some(Duration::from_millis(poll))).await;
        }
        idle(&reader).await;
    });
}

fn open(path: &Path, synchronous: Synchronous) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: p50 {:?}, p99 {:?}", at(50), at(99));
}

async fn begin(chat: &Chat, word: &str) -> StreamClaim {
    let streams = chat.store.streams().unwrap();
    let stream = StreamId::derive("bench", &[word.as_bytes()]);
    let opened = streams.open_stream(&chat.owner, &chat.id, stream, NOW);
    opened.await.unwrap().stream.claim()
}

async fn write(chat: &Chat, claim: StreamClaim, seq: usize, count: usize) -> Duration {
    let append = AppendChunks {
        claim,
        seq: seq as u64,
        chunks: vec![Arc::from(*CHUNK); count],
        at_ms: NOW,
    };
    let begun = Instant::now();
    let streams = chat.store.streams().unwrap();
    let appended = streams.append_chunks(&chat.owner, &chat.id, append);
    appended.await.unwrap();
    begun.elapsed()
}

/// One writer; what 32 gathered chunks and a single one cost, by durability.
async fn appends(full: &Path, normal: &Path) {
    let chats = [
        Chat::start(open(full, Synchronous::Full)).await,
        Chat::start(open(normal, Synchronous::Normal)).await,
    ];
    for count in [1, 32] {
        let mut times = [Vec::new(), Vec::new()];
        let claims = [begin(&chats[0], "a").await, begin(&chats[1], "a").await];
        for n in 0..300 {
            for which in [0, 1] {
                times[which].push(write(&chats[which], claims[which], n * count, count).await);
            }
        }
        for (name, times) in ["full", "normal"].iter().zip(&mut times) {
            report(&format!("append of {count} chunks, {name}"), times);
        }
    }
}

/// Sixteen running answers, and what an append of an item takes beside them.
async fn crowd(path: &Path, synchronous: Synchronous) {
    let store = open(path, synchronous);
    let beside = Chat::start_as(Arc::clone(&store), "bob", "beside").await;
    let writers = (0..16).map(|n| {
        let store = Arc::clone(&store);
        async move {
            let chat = Chat::start_as(store, "ada", &n.to_string()).await;
            let claim = begin(&chat, "a").await;
            let mut times = Vec::new();
            for n in 0..100 {
                times.push(write(&chat, claim, n * 32, 32).await);
            }
            times
        }
    });
    let begun = Instant::now();
    let items = async {
        let mut times = Vec::new();
        for n in 0..100 {
            let begun = Instant::now();
            let items = vec![item(&n.to_string())];
            let request = AppendRequest::new(Chat::at_tip("main"), items, NOW);
            beside.append_request(request).await.unwrap();
            times.push(begun.elapsed());
        }
        times
    };
    let (times, mut items) = tokio::join!(join_all(writers), items);
    let all = begun.elapsed();
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    let rate = times.len() as f64 * 32.0 / all.as_secs_f64();
    report(
        &format!("16 writers, 32 chunks, {synchronous:?}"),
        &mut times,
    );
    report(&format!("an item beside them, {synchronous:?}"), &mut items);
    println!("16 writers, {synchronous:?}: {rate:.0} chunks a second");
}

/// From a chunk's acknowledgement to its reader.
async fn follow(
    name: &str,
    writer: &Arc<dyn Store>,
    reader: &Arc<dyn Store>,
    poll: Option<Duration>,
) {
    let id = name.replace([' ', ','], "-");
    let chat = Chat::start_as(Arc::clone(writer), "ada", &id).await;
    let claim = begin(&chat, "a").await;
    let options = TailOptions {
        poll,
        ..TailOptions::default()
    };
    let (reader, id) = (Arc::clone(reader), chat.id.clone());
    let mut tail = StreamTail::open(reader, &chat.owner, &id, claim.stream, options).unwrap();
    let (seen, mut times_seen) = tokio::sync::mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        while let Some(Ok(TailEvent::Chunks { chunks, .. })) = tail.next().await {
            for _ in chunks {
                seen.send(Instant::now()).unwrap();
            }
        }
    });
    let (mut from_call, mut from_answer) = (Vec::new(), Vec::new());
    for n in 0..300_usize {
        let begun = Instant::now();
        write(&chat, claim, n, 1).await;
        let answered = Instant::now();
        let seen = times_seen.recv().await.unwrap();
        from_call.push(seen.duration_since(begun));
        from_answer.push(seen.saturating_duration_since(answered));
        // So that polls are met at any moment between two.
        tokio::time::sleep(Duration::from_micros((n as u64 * 7919) % 13_000)).await;
    }
    task.abort();
    report(&format!("{name}, from the call"), &mut from_call);
    report(&format!("{name}, from the answer"), &mut from_answer);
}

/// What a reader that waits and looks costs.
async fn idle(store: &Arc<dyn Store>) {
    let chat = Chat::start_as(Arc::clone(store), "ada", "idle").await;
    let claim = begin(&chat, "a").await;
    let read = contexture_store::ReadChunks::new(claim.stream);
    let mut times = Vec::new();
    for _ in 0..2000 {
        let begun = Instant::now();
        let streams = chat.store.streams().unwrap();
        let page = streams.read_chunks(&chat.owner, &chat.id, read).await;
        assert!(page.unwrap().chunks.is_empty());
        times.push(begun.elapsed());
    }
    report("looking when there is nothing", &mut times);
}
