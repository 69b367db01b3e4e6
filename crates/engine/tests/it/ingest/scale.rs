//! Long histories: what a request costs grows with what is in it, and no faster.

use std::fs;

use contexture_engine::{Engine, IngestRequest};

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

/// Ingests a new history of so many short messages, and returns the processor time it took.
async fn ingest_cost(messages: usize) -> Option<u64> {
    let engine = Engine::in_memory();
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

#[tokio::test]
async fn twice_the_messages_take_twice_the_time() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let most = if soak { 1_000_000 } else { 40_000 };
    let mut seen = Vec::new();
    // Neighbours on the machine take its caches, and so processor time: what grows faster does so each time.
    for _ in 0..3 {
        let (Some(half), Some(whole)) = (ingest_cost(most / 2).await, ingest_cost(most).await)
        else {
            return;
        };
        seen.push((half, whole));
        // At most 2.2 times, and a few ticks by which the clock is coarse.
        if whole <= half * 22 / 10 + 20 {
            return;
        }
    }
    panic!("ticks for {} and {most} messages: {seen:?}", most / 2);
}
