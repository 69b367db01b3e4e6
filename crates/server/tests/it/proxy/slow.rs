//! A database that is too slow.

use std::sync::Arc;

use contexture::{Engine, SqliteStore};
use contexture_upstream_testkit::ScriptedProvider;
use rusqlite::Connection;

use super::policies::{all, sent};
use super::{Proxied, chat, says};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_does_not_wait_longer_than_the_policy_says_and_goes_as_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slow.db");
    let engine = Engine::new(Arc::new(SqliteStore::open(&file).unwrap()));
    let config = all("window = { turns = 1 }\npays = \"fits\"\ningest_timeout_ms = 20\n");
    let proxied = Proxied::to(ScriptedProvider::default(), engine, &config).await;
    // Another process writes, and does not come to an end.
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
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
    other.execute_batch("ROLLBACK").unwrap();
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
