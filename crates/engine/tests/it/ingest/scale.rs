//! Long histories: what a request costs grows with what is in it, and no faster.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_engine::{Engine, IngestRequest};
use contexture_store_sqlite::SqliteStore;
use contexture_wire::{Format, lift};

use super::client::{owner, request, user};

/// Returns the processor time that this process has used, in ticks of the system's clock (a hundredth of a second); `None`
/// where the system does not say.
fn processor_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything: the 12th and 13th field are the time in user and in kernel mode.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(2);
    times.map(|field| field.parse::<u64>().ok()).sum()
}

/// Ingests a new history of so many short messages into a new store, and returns the processor time it took.
async fn ingest_cost(engine: Engine, messages: usize) -> Option<u64> {
    let items: Vec<_> = (0..messages)
        .map(|n| user(&format!("message {n}")))
        .collect();
    let transcript = request(&items);
    let before = processor_ticks()?;
    let ingested = engine
        .ingest(&owner(), IngestRequest::new(&transcript))
        .await;
    assert_eq!(ingested.unwrap().appended.len(), messages);
    Some(processor_ticks()? - before)
}

/// Reads a request whose one tool has so many keys in its schema, ingests it, and returns the processor time it took.
async fn keys_cost(keys: usize) -> Option<u64> {
    let engine = Engine::in_memory();
    let properties: Vec<String> = (0..keys).map(|n| format!(r#""key_{n}":{{}}"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}}}}"#,
        properties.join(",")
    );
    let tool =
        format!(r#"{{"type":"function","function":{{"name":"find","parameters":{schema}}}}}"#);
    let body = format!(
        r#"{{"model":"gpt-4.1","messages":[{{"role":"user","content":"Hi"}}],"tools":[{tool}]}}"#
    );
    let before = processor_ticks()?;
    let transcript = lift(Format::OpenAiChat, &body).unwrap().transcript;
    let ingested = engine
        .ingest(&owner(), IngestRequest::new(&transcript))
        .await;
    assert!(!ingested.unwrap().appended.is_empty());
    Some(processor_ticks()? - before)
}

/// Checks that twice as much takes at most 2.2 times the processor time, and a few ticks by which the clock is coarse. Neighbours
/// on the machine take its caches, and so processor time: what grows faster does so in each of three tries.
async fn check_linear(what: &str, most: usize, cost: impl AsyncFn(usize) -> Option<u64>) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (Some(half), Some(whole)) = (cost(most / 2).await, cost(most).await) else {
            return;
        };
        println!(
            "{what}: {half} and {whole} ticks for {} and {most}",
            most / 2
        );
        seen.push((half, whole));
        if whole <= half * 22 / 10 + 20 {
            return;
        }
    }
    panic!("{what}: ticks for {} and {most}: {seen:?}", most / 2);
}

#[tokio::test]
async fn twice_the_history_takes_twice_the_time() {
    let (messages, keys) = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => (1_000_000, 1_000_000),
        None => (20_000, 50_000),
    };
    check_linear("in memory", messages, async |count| {
        ingest_cost(Engine::in_memory(), count).await
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let stores = AtomicUsize::new(0);
    check_linear("on SQLite", messages, async |count| {
        let number = stores.fetch_add(1, Ordering::Relaxed);
        let store = SqliteStore::open(folder.path().join(format!("{number}.db"))).unwrap();
        ingest_cost(Engine::new(Arc::new(store)), count).await
    })
    .await;
    check_linear("keys of an object", keys, keys_cost).await;
}
