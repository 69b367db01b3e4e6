//! Limits in dollars: who has spent what it may is refused until the day ends, as the provider would refuse.

use std::sync::Arc;

use contexture::ir::{CallId, Transcript};
use contexture::store::{CallRecord, MemoryStore, Store};
use contexture::store_sqlite::SqliteStore;
use contexture::{Engine, Format, Owner};
use contexture_server::NewKey;
use contexture_store_testkit::{Faulty, Method as StoreMethod};
use contexture_upstream_testkit::ScriptedProvider;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::own_talk::{Mode, body_of, path_of, text_streamed, user};
use super::{Proxied, chat, said, says};
use crate::test_support::Answer;

const CHAT: &str = "/v1/chat/completions";

fn key_lines(name: &str, key: &NewKey, more: &str) -> String {
    let hash = key.hash();
    format!(
        "[[keys]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nowner = \"team\"\nscopes = [\"proxy\", \"read\"]\n{more}\n"
    )
}

/// Two keys of one owner, of which the first may spend so much a day.
fn two_keys(limit: &str) -> ([NewKey; 2], String) {
    let keys = [NewKey::random().unwrap(), NewKey::random().unwrap()];
    let limit = format!("dollars_per_day = \"{limit}\"");
    let config = key_lines("poor", &keys[0], &limit) + &key_lines("rich", &keys[1], "");
    (keys, config)
}

/// A refusal for want of money, told in words and to programs.
fn check_refusal(answer: &Answer, limit: &str) {
    assert_eq!(
        answer.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        answer.text
    );
    assert_eq!(answer.headers["x-contexture-failed"], "spend_limit");
    assert_eq!(answer.headers["x-should-retry"], "false");
    let wait: u64 = answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    for part in [limit, "a day", "has spent $", "T00:00:00Z"] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
}

/// Asks a first question in a format, and returns the answer once it is recorded.
async fn ask_in(proxied: &Proxied, format: Format, text: &str) -> Answer {
    let mut request = Transcript {
        items: vec![user(text)],
        ..Transcript::default()
    };
    if format == Format::Anthropic {
        request.options.max_output_tokens = Some(100);
    }
    let body = body_of(format, Mode::Whole, request);
    let answer = proxied.ask(&path_of(format, Mode::Whole), &body).await;
    if answer.status.is_success() {
        proxied.outcome(&answer).await;
    }
    answer
}

#[tokio::test]
async fn a_key_stops_at_its_limit_in_every_format() {
    for format in text_streamed() {
        let (keys, config) = two_keys("0.000001");
        let mut proxied =
            Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &config).await;
        proxied.stand.as_bearer(Some(keys[0].secret()));
        // What another server has recorded counts as well.
        let now = CallId::from_bytes(uuid::Uuid::now_v7().into_bytes());
        let mut spent = CallRecord::new(now, "elsewhere");
        spent.names.key = "poor".to_owned();
        spent.details.pico_dollars = Some(1_000_000);
        let calls = proxied.stand.engine.store().calls().unwrap();
        let owner = Owner::new("team").unwrap();
        calls.record_calls(&owner, vec![spent]).await.unwrap();
        let refused = ask_in(&proxied, format, "two").await;
        check_refusal(&refused, "keys.dollars_per_day");
        let error = &refused.json()["error"];
        match format {
            Format::Anthropic => assert_eq!(error["type"], "rate_limit_error", "{error}"),
            Format::Gemini => assert_eq!(error["status"], "RESOURCE_EXHAUSTED", "{error}"),
            _ => assert_eq!(error["code"], "spend_limit", "{error}"),
        }
        assert!(proxied.upstream.received_requests().is_empty(), "{format}");
        // The refused call is in the record, and whatever costs nothing is still passed on.
        let blocked = loop {
            let listed = proxied.stand.get("/api/v1/calls?outcome=blocked").await;
            match listed.ok()["calls"].get(0) {
                Some(call) => break call.clone(),
                None => tokio::task::yield_now().await,
            }
        };
        assert_eq!(blocked["status"], 429, "{blocked}");
        let models = proxied.stand.get("/v1/models").await;
        assert_ne!(models.status, StatusCode::TOO_MANY_REQUESTS);
        // The other key of the same owner has no limit.
        proxied.stand.as_bearer(Some(keys[1].secret()));
        ask_in(&proxied, format, "three").await.ok();
    }
}

#[tokio::test]
async fn an_owner_stops_at_its_limit_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        Engine::new(Arc::new(
            SqliteStore::open(folder.path().join("a.db")).unwrap(),
        ))
    };
    let config = "[server.limits]\ndollars_per_day = \"0.000001\"\n";
    let first = Proxied::to(ScriptedProvider::default(), open(), config).await;
    ask_in(&first, Format::OpenAiChat, "one").await.ok();
    let refused = ask_in(&first, Format::OpenAiChat, "two").await;
    check_refusal(&refused, "server.limits.dollars_per_day");
    let Proxied { mut stand, .. } = first;
    stand.stop();
    stand.stopped().await;
    let again = Proxied::to(ScriptedProvider::default(), open(), config).await;
    let refused = ask_in(&again, Format::OpenAiChat, "three").await;
    check_refusal(&refused, "server.limits.dollars_per_day");
}

/// A conversation is known by its name or by its history; what is refused leaves nothing in it.
#[tokio::test]
async fn a_conversation_stops_at_its_limit_alone() {
    let config = "[server.limits]\nconversation_dollars_per_day = \"0.000001\"\n";
    for named in [true, false] {
        let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), config).await;
        let name = named.then_some(("x-contexture-conversation", "c-1"));
        let headers: Vec<_> = name.into_iter().collect();
        let mut history = vec![says("one")];
        let first = proxied.ask_with(CHAT, &chat(&history), &headers).await;
        proxied.outcome(&first).await;
        history.extend([said(&first), says("two")]);
        let before = proxied.conversations().await;
        for _ in 0..2 {
            let refused = proxied.ask_with(CHAT, &chat(&history), &headers).await;
            check_refusal(&refused, "server.limits.conversation_dollars_per_day");
        }
        let after = proxied.conversations().await;
        assert_eq!(after.len(), 1, "{after:?}");
        assert_eq!(after[0]["messages"], before[0]["messages"], "{named}");
        assert_eq!(proxied.upstream.received_requests().len(), 1);
        let other = [("x-contexture-conversation", "c-2")];
        proxied
            .ask_with(CHAT, &chat(&[says("apart")]), &other)
            .await
            .ok();
    }
}

/// What was spent is read from the store once, whatever number of calls there is, and is what the record says.
#[tokio::test]
async fn a_limit_is_not_read_from_the_store_by_every_call() {
    let store = Arc::new(Faulty::never(Arc::new(MemoryStore::new())));
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>);
    let config =
        "[server.limits]\ndollars_per_day = \"1000\"\nconversation_dollars_per_day = \"1000\"\n";
    let proxied = Proxied::to(ScriptedProvider::default(), engine, config).await;
    let headers = [("x-contexture-conversation", "c-1")];
    let mut history = Vec::new();
    for turn in 0..30 {
        history.push(says(&format!("{turn}")));
        let answer = proxied.ask_with(CHAT, &chat(&history), &headers).await;
        proxied.outcome(&answer).await;
        history.push(said(&answer));
    }
    let reads = store.call_counts().get(&StoreMethod::SumCalls).copied();
    assert!(reads.is_some_and(|reads| reads <= 4), "{reads:?}");
}

/// Of what has no price nobody knows what it costs, so no limit holds for it.
#[tokio::test]
async fn a_model_without_price_is_not_limited() {
    let config = "[server.limits]\ndollars_per_day = \"0.000001\"\n";
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), config).await;
    for text in ["one", "two", "three"] {
        let body = json!({"model": "qwen3-coder:30b", "messages": [says(text)]});
        let answer = proxied.ask(CHAT, &body).await;
        answer.ok();
        proxied.outcome(&answer).await;
    }
    let usage = proxied.stand.get("/api/v1/usage").await.ok();
    assert_eq!(
        (&usage["total"]["calls"], &usage["total"]["dollars"]),
        (&json!(3), &json!("0"))
    );
    assert_ne!(usage["total"]["output_tokens"], Value::from(0));
}
