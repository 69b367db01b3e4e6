//! A part of ours that panics: requests go as they came, the server goes on, and nobody is told what the panic said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contexture::Engine;
use contexture::engine::Clock;
use contexture_upstream_testkit::ScriptedProvider;
use serde_json::json;

use super::canary::{Canary, none_in};
use super::capture::Capture;
use crate::proxy::{Proxied, chat, says};

const SECRET: &str = "sk-canary-of-a-panic/5Yt+8==";

/// Stops with a secret on its lips, once it is told to.
#[derive(Clone, Debug, Default)]
struct Broken(Arc<AtomicBool>);

impl Clock for Broken {
    fn now_ms(&self) -> i64 {
        assert!(!self.0.load(Ordering::Relaxed), "of {SECRET}");
        1_700_000_000_000
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_told_by_its_place() {
    let capture = Capture::begin();
    contexture_server::log_panics();
    let clock = Broken::default();
    let engine = Engine::in_memory().with_clock(clock.clone());
    let policy = "[policies.frugal]\nwindow = { turns = 2 }\n";
    let proxied = Proxied::to(ScriptedProvider::default(), engine, policy).await;
    let body = chat(&[says("Hi")]);
    let path = "/v1/chat/completions";
    let before = proxied.ask(path, &body).await;
    // Stored by now, with a clock that works.
    proxied.outcome(&before).await;
    clock.0.store(true, Ordering::Relaxed);
    let mut told = String::new();
    for headers in [&[][..], &[("x-contexture-policy", "frugal")]] {
        let answer = proxied.ask_with(path, &body, headers).await;
        assert_eq!((answer.status, &answer.text), (before.status, &before.text));
        assert_eq!(answer.headers["x-contexture-failed"], "fault");
        told.push_str(&format!("{:?}", answer.headers));
        told.push_str(&proxied.outcome(&answer).await.to_string());
    }
    let sent = proxied.upstream.received_requests();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|one| one.body == sent[0].body));
    let own = proxied
        .stand
        .post("/api/v1/conversations", &json!({}))
        .await;
    assert_eq!(own.status, 500, "{}", own.text);
    assert_eq!(own.json()["code"], "fault");
    assert!(
        own.headers["content-type"]
            .to_str()
            .unwrap()
            .contains("problem")
    );
    told.push_str(&own.text);
    let figures = proxied.stand.get("/metrics").await.text;
    assert!(
        figures.contains("contexture_proxy_missed_total{what=\"fault\"} 2"),
        "{figures}"
    );
    clock.0.store(false, Ordering::Relaxed);
    let after = proxied.ask(path, &body).await;
    assert_eq!(proxied.outcome(&after).await["failed"], json!(null));
    let logged = capture.text();
    assert!(logged.contains("defects.rs:"), "{logged}");
    let canary = [Canary::new("what it said", SECRET)];
    none_in(&canary, "answers", told);
    none_in(&canary, "figures", figures);
    none_in(&canary, "the log", logged);
}
