//! Secrets, taken out of what is sent and of what is stored.

use std::io::Write as _;

use contexture::Engine;
use contexture::Owner;
use contexture::engine::Secrets;
use contexture::store::{PathEnd, ReadRequest};
use contexture_upstream_testkit::{Received, ScriptedProvider};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::policies::{all, sent};
use super::{Proxied, chat, said, says};
use crate::test_support::Answer;

const CHAT: &str = "/v1/chat/completions";
const KEY: &str = "sk-proj-T3BlbkFJ4c8R2mQz7LkW9xYp1NvB6dHs";
const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
const GONE: &str = "[redacted: API key]";

async fn redacting() -> Proxied {
    over(Engine::in_memory(), &all("redact = true\n")).await
}

async fn over(engine: Engine, config: &str) -> Proxied {
    Proxied::to(ScriptedProvider::default(), engine, config).await
}

async fn post(proxied: &Proxied, path: &str, body: impl Into<reqwest::Body>) -> Answer {
    let request = proxied.stand.request(Method::POST, path);
    let request = request
        .header("content-type", "application/json")
        .header("x-contexture-wait", "ingest");
    proxied.stand.send(request.body(body)).await
}

/// All that is kept of a conversation, as it is stored.
async fn stored(engine: &Engine, id: &str) -> Vec<String> {
    let owner = Owner::local();
    let chat = engine.conversation(id);
    let chat = chat.open().await.unwrap();
    let whole = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let page = engine
        .store()
        .read_path(&owner, chat.id(), whole)
        .await
        .unwrap();
    page.nodes
        .iter()
        .map(|node| node.json.to_string())
        .collect()
}

#[tokio::test]
async fn redaction_replaces_secrets_and_keeps_other_bytes() {
    let proxied = redacting().await;
    let bodies = [
        (
            CHAT,
            format!(
                r#"{{ "model" : "gpt-4.1","messages":[{{"role":"system","content":"{KEY}"}}, {{"role":"user","content":"a\n{KEY} b\u003d{KEY}"}},
                {{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{\"k\":\"{KEY}\"}}"}}}}]}},
                {{"role":"tool","tool_call_id":"c","content":"{KEY}"}}],"user":"sk-short", "x_new":1.0 }}"#
            ),
        ),
        (
            "/v1/responses",
            format!(r#"{{"model":"gpt-4.1","instructions":"{KEY}","input":"{KEY}"}}"#),
        ),
        (
            "/v1/messages",
            format!(
                r#"{{"model":"claude-sonnet-4-5","max_tokens":9,"system":"{KEY}","messages":[{{"role":"user","content":[{{"type":"text","text":"{KEY}"}}]}}]}}"#
            ),
        ),
        (
            "/v1/messages/count_tokens",
            format!(
                r#"{{"model":"claude-sonnet-4-5","messages":[{{"role":"user","content":"{KEY}"}}]}}"#
            ),
        ),
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"{KEY}"}}]}}]}}"#),
        ),
    ];
    for (path, body) in bodies {
        post(&proxied, path, body.clone()).await;
        assert_eq!(sent(&proxied).pop().unwrap(), body.replace(KEY, GONE));
        let none = body.replace(KEY, "nothing");
        post(&proxied, path, none.clone()).await;
        assert_eq!(sent(&proxied).pop().unwrap(), none);
    }
}

#[tokio::test]
async fn packed_requests_are_redacted_and_go_unpacked() {
    let proxied = redacting().await;
    let body = chat(&[says(KEY)]).to_string();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(body.as_bytes()).unwrap();
    let request = proxied.stand.request(Method::POST, CHAT);
    let request = request
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .header("x-contexture-wait", "ingest")
        .body(packed.finish().unwrap());
    let answer = proxied.stand.send(request).await;
    answer.ok();
    assert!(!answer.headers.contains_key("x-contexture-failed"));
    let received = proxied.upstream.received_requests();
    assert_eq!(received[0].header("content-encoding"), None);
    assert_eq!(received[0].body, body.replace(KEY, GONE).as_bytes());
}

#[tokio::test]
async fn redacted_history_is_stored_clean_and_still_matched() {
    for own in [None, Some(Secrets::common())] {
        let engine = match own {
            Some(secrets) => Engine::in_memory().with_secrets(secrets),
            None => Engine::in_memory(),
        };
        let proxied = over(engine.clone(), &all("redact = true\n")).await;
        let mut history = vec![json!({"role": "system", "content": KEY})];
        for turn in 0..4 {
            history.push(says(&format!("{turn}: my key is {KEY}")));
            let answer = proxied.ask(CHAT, &chat(&history)).await;
            history.push(said(&answer));
            let outcome = proxied.outcome(&answer).await;
            let expected = if turn == 0 { "new" } else { "prefix" };
            assert_eq!(outcome["matched"], expected, "{outcome}");
            assert_eq!(outcome["appended"], 1, "{outcome}");
        }
        let conversations = proxied.conversations().await;
        assert_eq!(conversations.len(), 1);
        let id = conversations[0]["id"].as_str().unwrap();
        let nodes = stored(&engine, id).await;
        assert_eq!(nodes.len(), 8);
        assert!(
            nodes.iter().all(|node| !node.contains("T3Blbk")),
            "{nodes:?}"
        );
        assert!(nodes[6].contains(&format!("3: my key is {GONE}")));
        let path = format!("/api/v1/conversations/{id}/messages");
        let messages = proxied.stand.get(&path).await;
        assert!(messages.text.contains(GONE), "{}", messages.text);
        assert!(!messages.text.contains("T3Blbk"), "{}", messages.text);
    }
}

#[tokio::test]
async fn what_was_stored_before_is_not_sent_by_a_policy_that_rewrites() {
    let engine = Engine::in_memory();
    let mut history = Vec::new();
    let before = over(engine.clone(), "").await;
    for turn in 0..3 {
        history.push(says(&format!("{turn}: {KEY}")));
        let answer = before.ask(CHAT, &chat(&history)).await;
        before.outcome(&answer).await;
        history.push(said(&answer));
    }
    let config = all("redact = true\nwindow = { turns = 2 }\npays = \"fits\"\n");
    let proxied = over(engine, &config).await;
    history.push(says(&format!("now {KEY}")));
    let answer = proxied.ask(CHAT, &chat(&history)).await;
    answer.ok();
    assert!(answer.headers.contains_key("x-contexture-tokens-saved"));
    assert_eq!(answer.headers["x-contexture-match"], "prefix");
    let body = sent(&proxied).pop().unwrap();
    assert!(!body.contains("T3Blbk"), "{body}");
    assert_eq!(body.matches(GONE).count(), 2, "{body}");
}

#[tokio::test]
async fn redaction_under_policy_without_cut_changes_only_secrets() {
    let proxied = over(
        Engine::in_memory(),
        &all("redact = true\nlimit_tokens = 2000\n"),
    )
    .await;
    let body = format!(
        "{{\"messages\" : [{{\"content\":\"{KEY}\",\"role\":\"user\"}}], \"model\":\"gpt-4.1\"}}"
    );
    let answer = post(&proxied, CHAT, body.clone()).await;
    answer.ok();
    assert!(!answer.headers.contains_key("x-contexture-failed"));
    assert!(!answer.headers.contains_key("x-contexture-tokens-saved"));
    assert_eq!(sent(&proxied), [body.replace(KEY, GONE)]);
}

#[tokio::test]
async fn only_the_kinds_that_are_named_and_the_routes_word_holds() {
    let more = "[policies.some]\nredact = { kinds = [\"github_token\"] }\n\
        [policies.more]\nredact = { kinds = [\"api_key\"] }\n\
        [policies.open]\nredact = false\n[[routes]]\npolicy = \"some\"\n";
    let proxied = over(Engine::in_memory(), more).await;
    let body = chat(&[says(&format!("{KEY} {TOKEN}"))]);
    let cases: [(&[(&str, &str)], String); 4] = [
        (&[], format!("{KEY} [redacted: GitHub token]")),
        (
            &[("x-contexture-bypass", "true")],
            format!("{KEY} [redacted: GitHub token]"),
        ),
        (
            &[("x-contexture-policy", "open")],
            format!("{KEY} [redacted: GitHub token]"),
        ),
        (
            &[("x-contexture-policy", "more")],
            format!("{GONE} [redacted: GitHub token]"),
        ),
    ];
    for (headers, expected) in cases {
        proxied.ask_with(CHAT, &body, headers).await.ok();
        let sent = sent(&proxied).pop().unwrap();
        assert_eq!(sent, chat(&[says(&expected)]).to_string(), "{headers:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_does_not_pass() {
    let proxied = redacting().await;
    for (path, body) in [
        (CHAT, String::new()),
        (CHAT, format!("{{\"messages\": \"{KEY}\"")),
        ("/v1/messages", format!("key={KEY}")),
        ("/v1/embeddings", format!("[\"{KEY}\"")),
    ] {
        for bypass in ["false", "true"] {
            let request = proxied.stand.request(Method::POST, path);
            let request = request
                .header("content-type", "application/json")
                .header("x-contexture-bypass", bypass)
                .body(body.clone());
            let answer = proxied.stand.send(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
            assert_eq!(answer.headers["x-contexture-failed"], "unreadable");
            let error: Value = answer.json()["error"].clone();
            assert!(error["message"].as_str().unwrap().contains("secrets"));
        }
    }
    assert_eq!(
        proxied.upstream.received_requests(),
        Vec::<std::sync::Arc<Received>>::new()
    );
    // Files are not requests of words: they are passed on unread.
    let upload = proxied.stand.request(Method::POST, "/v1/files");
    let upload = upload
        .header("content-type", "multipart/form-data; boundary=x")
        .body(format!("--x\r\n{KEY}"));
    proxied.stand.send(upload).await;
    assert_eq!(sent(&proxied), [format!("--x\r\n{KEY}")]);
}
