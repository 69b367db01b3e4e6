//! A database that is too slow.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use contexture::Engine;
use contexture::store_sqlite::SqliteStore;
use contexture_upstream_testkit::ScriptedProvider;
use flate2::Compression;
use flate2::write::GzEncoder;
use rusqlite::Connection;
use tempfile::TempDir;

use super::policies::{all, sent};
use super::{Proxied, chat, said, says};
use crate::test_support::Answer;

const CHAT: &str = "/v1/chat/completions";

/// A database in which another process writes, and does not come to an end until it is told.
struct Slow {
    other: Connection,
    _folder: TempDir,
}

impl Slow {
    fn end(&self) {
        self.other.execute_batch("ROLLBACK").unwrap();
    }
}

/// A server over such a database.
async fn behind(config: &str) -> (Proxied, Slow) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slow.db");
    let engine = Engine::new(Arc::new(SqliteStore::open(&file).unwrap()));
    let proxied = Proxied::to(ScriptedProvider::default(), engine, config).await;
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let slow = Slow {
        other,
        _folder: folder,
    };
    (proxied, slow)
}

#[tokio::test(flavor = "multi_thread")]
async fn rewrite_timeout_forwards_original_request() {
    let config = all("window = { turns = 1 }\npays = \"fits\"\ningest_timeout_ms = 20\n");
    let (proxied, slow) = behind(&config).await;
    let history = [
        says("one"),
        serde_json::json!({"role": "assistant", "content": "1"}),
        says("two"),
    ];
    let body = chat(&history);
    let request = proxied
        .stand
        .request(reqwest::Method::POST, CHAT)
        .header("content-type", "application/json")
        .body(body.to_string());
    let answer = proxied.stand.send(request).await;
    answer.ok();
    assert_eq!(answer.headers["x-contexture-failed"], "timeout");
    assert_eq!(sent(&proxied), [body.to_string()]);
    slow.end();
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(outcome["failed"], "timeout", "{outcome}");
    assert!(outcome["answer"]["head"].is_string(), "{outcome}");
    assert_eq!(proxied.conversations().await[0]["items"], 4);
    let figures = proxied.stand.get("/metrics").await.text;
    assert!(
        figures.contains("contexture_proxy_failed_open_total{what=\"timeout\"}"),
        "{figures}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_room_to_wait_is_passed_on_and_not_stored() {
    let limits = "[server.limits]\nmemory_bytes = 262144\n";
    let (proxied, slow) = behind(limits).await;
    // Each takes more than half of the room.
    let ask = |text: &'static str| {
        let body = chat(&[says(text)]).to_string();
        let request = proxied.stand.request(reqwest::Method::POST, CHAT);
        let request = request.header("content-type", "application/json");
        proxied.stand.send(request.body(body))
    };
    let waits = ask("I wait");
    let waits = waits.await;
    waits.ok();
    let late = ask("I find no room").await;
    late.ok();
    let outcome = proxied.outcome(&late).await;
    assert_eq!(outcome["failed"], "overload", "{outcome}");
    slow.end();
    let outcome = proxied.outcome(&waits).await;
    assert_eq!(outcome["failed"], serde_json::Value::Null, "{outcome}");
    let after = ask("I find room").await;
    let outcome = proxied.outcome(&after).await;
    assert_eq!(outcome["failed"], serde_json::Value::Null, "{outcome}");
    assert_eq!(proxied.conversations().await.len(), 2);
    let figures = proxied.stand.get("/metrics").await.text;
    assert!(
        figures.contains("contexture_proxy_missed_total{what=\"overload\"} 1"),
        "{figures}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packed_request_takes_the_room_of_what_is_in_it() {
    let limits = "[server.limits]\nmemory_bytes = 2097152\n";
    let (proxied, slow) = behind(limits).await;
    // Packed to less than a hundredth, each takes more than half of the room.
    let ask = |text: &str| {
        let body = chat(&[says(&text.repeat(20_000))]).to_string();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(body.as_bytes()).unwrap();
        let request = proxied.stand.request(reqwest::Method::POST, CHAT);
        let request = request
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .body(packed.finish().unwrap());
        proxied.stand.send(request)
    };
    let (first, second) = (ask("one of two").await, ask("two of two").await);
    first.ok();
    second.ok();
    let failed = |outcome: &serde_json::Value| outcome["failed"] == "overload";
    // Whichever is read later finds no room; the other one waits for the database.
    let outcomes = async {
        tokio::select! {
            outcome = proxied.outcome(&first) => outcome,
            outcome = proxied.outcome(&second) => outcome,
        }
    };
    let outcome = outcomes.await;
    assert!(failed(&outcome), "{outcome}");
    slow.end();
    let (first, second) = (
        proxied.outcome(&first).await,
        proxied.outcome(&second).await,
    );
    assert_ne!(failed(&first), failed(&second), "{first} {second}");
    assert_eq!(proxied.conversations().await.len(), 1);
    let third = ask("three of").await;
    let outcome = proxied.outcome(&third).await;
    assert_eq!(outcome["failed"], serde_json::Value::Null, "{outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn next_request_waits_until_the_answer_before_it_is_stored() {
    let named = [("x-contexture-conversation", "mine")];
    for headers in [&[][..], &named] {
        let (proxied, slow) = behind("").await;
        let mut history = Vec::new();
        let mut answers = Vec::new();
        // Nothing can be stored, and the client goes on.
        for turn in 0..3 {
            history.push(says(&format!("question {turn}")));
            let answer = ask_at_once(&proxied, &history, headers).await;
            history.push(said(&answer));
            answers.push(answer);
        }
        slow.end();
        for answer in &answers {
            let outcome = proxied.outcome(answer).await;
            assert_eq!(outcome["raced"], false, "{outcome}");
            assert_eq!(outcome["appended"], 1, "{outcome}");
        }
        let conversations = proxied.conversations().await;
        assert_eq!(conversations.len(), 1, "{conversations:?}");
        assert_eq!(conversations[0]["items"], 6, "{conversations:?}");
        assert_eq!(conversations[0]["branches"], 1, "{conversations:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_for_an_answer_is_bounded_and_counted() {
    let (proxied, slow) = behind("").await;
    let mut history = vec![says("question")];
    let first = ask_at_once(&proxied, &history, &[]).await;
    history.extend([said(&first), says("and?")]);
    let second = ask_at_once(&proxied, &history, &[]).await;
    let outcome = async |answer| {
        let outcome = proxied.outcome(answer).await;
        (outcome["raced"].clone(), outcome["waited_ms"].as_u64())
    };
    // Longer than anybody waits.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    slow.end();
    assert_eq!(outcome(&first).await, (false.into(), Some(0)));
    let (raced, waited) = outcome(&second).await;
    assert_eq!(raced, true);
    assert!(waited >= Some(2_000), "{waited:?}");
    let figures = proxied.stand.get("/metrics").await.text;
    for name in [
        "contexture_proxy_raced_total 1",
        "contexture_proxy_wait_seconds",
    ] {
        assert!(figures.contains(name), "{figures}");
    }
}

/// Asks, and waits for the answer only.
async fn ask_at_once(
    proxied: &Proxied,
    history: &[serde_json::Value],
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = proxied.stand.request(reqwest::Method::POST, CHAT);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("content-type", "application/json");
    let body = chat(history).to_string();
    proxied.stand.send(request.body(body)).await
}
