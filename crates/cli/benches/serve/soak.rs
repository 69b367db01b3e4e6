//! Agents' sessions for minutes, and what the server takes of the machine meanwhile: nothing may grow but what is stored.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::task::JoinSet;

use crate::process::Process;
use crate::{FRUGAL, answered, ask, asker, body, history, upstream};

/// Sessions at a time, the turns of each, and the tokens that each begins with.
const SESSIONS: usize = 8;
const TURNS: usize = 40;
const TOKENS: usize = 5_000;
/// Between an answer and the next question.
const PAUSE: Duration = Duration::from_millis(100);

/// Half of the sessions are passed through, half are under a policy.
pub(crate) async fn soak(minutes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let (_upstream, direct) = upstream(answered).await;
    let policy = FRUGAL.split("[[routes]]").next().unwrap();
    let ours = Process::contexture(direct, directory.path(), policy);
    println!("\n{SESSIONS} sessions at a time of {TURNS} turns, {minutes} minutes");
    println!("  minute  requests      MB  most MB  files  threads  stored MB");
    let (start, mut sessions) = (Instant::now(), JoinSet::new());
    for worker in 0..SESSIONS {
        sessions.spawn(sit(ours.address, worker, start, minutes));
    }
    for minute in 0..=minutes {
        tokio::time::sleep_until((start + Duration::from_secs(60 * minute)).into()).await;
        let (now, most) = ours.memory().unwrap_or_default();
        let (files, threads) = ours.held().unwrap_or_default();
        let bytes =
            |file: &str| std::fs::metadata(directory.path().join(file)).map_or(0, |m| m.len());
        let stored = (bytes("bench.db") + bytes("bench.db-wal")) >> 20;
        let asked = ours.count(&asker(), "contexture_http_requests_total").await;
        println!(
            "  {minute:>6} {asked:>9} {now:>7} {most:>8} {files:>6} {threads:>8} {stored:>10}"
        );
    }
    let asked: u64 = sessions.join_all().await.into_iter().sum();
    let missed = ours.count(&asker(), "contexture_proxy_missed_total").await;
    println!("  {asked} requests answered, {missed} of them not stored");
}

/// One session after the other until the time is over; how often it asked.
async fn sit(address: SocketAddr, worker: usize, start: Instant, minutes: u64) -> u64 {
    let (asker, mut asked) = (asker(), 0);
    for session in 0.. {
        let mut messages = history(TOKENS);
        for turn in 0..TURNS {
            if start.elapsed() >= Duration::from_secs(60 * minutes) {
                return asked;
            }
            let text = format!("Session {session} of {worker}, turn {turn}?");
            messages.push(json!({ "role": "user", "content": text }));
            let policy = worker.is_multiple_of(2).then_some("frugal");
            let answer = ask(&asker, address, &body(&messages), policy).await;
            answer.into_body().collect().await.unwrap();
            messages.push(json!({ "role": "assistant", "content": "Fine." }));
            asked += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
    asked
}
