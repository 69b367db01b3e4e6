//! The same bytes both ways.

use contexture::Engine;
use contexture_upstream_testkit::{Gate, Received, ScriptedProvider, UpstreamResponse as Scripted};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Proxied, chat, says};

/// A request of a client that unpacks nothing, and adds no header but `accept`.
fn unadorned(proxied: &Proxied, path: &str) -> reqwest::RequestBuilder {
    let client = reqwest::Client::builder().no_gzip().no_proxy().build();
    let url = format!("http://{}{path}", proxied.stand.address);
    client.unwrap().post(url)
}

#[tokio::test]
async fn a_request_goes_out_as_it_came() {
    let proxied = Proxied::new().await;
    // Spaces, an unknown field, a number no double holds, two fields of one name, an escape nobody needs.
    let body = "{ \"model\":\"gpt-4.1\",  \"messages\" : [{\"role\":\"user\",\"content\":\"\\u0048i\"}],\n\"x_new\":12345678901234567890123, \"seed\":1,\"seed\":2 }";
    let request = unadorned(&proxied, "/v1/chat/completions?trace=a%2Fb&x")
        .header("content-type", "application/json")
        .header("authorization", "Bearer sk-of-the-client")
        .header("openai-beta", "one=1")
        .header("x-stainless-lang", "python")
        .header("cookie", "session=1")
        .header("user-agent", "Client/1.0")
        .body(body);
    proxied.stand.send(request).await.ok();
    let seen = proxied.upstream.received_requests();
    assert_eq!(seen.len(), 1);
    let sent = &seen[0];
    assert_eq!(sent.method, "POST");
    assert_eq!(sent.target, "/v1/chat/completions?trace=a%2Fb&x");
    assert_eq!(sent.body, body.as_bytes());
    for (name, value) in [
        ("authorization", "Bearer sk-of-the-client"),
        ("openai-beta", "one=1"),
        ("x-stainless-lang", "python"),
        ("user-agent", "Client/1.0"),
        ("content-type", "application/json"),
        ("accept", "*/*"),
        (
            "host",
            proxied.upstream.base_url().strip_prefix("http://").unwrap(),
        ),
    ] {
        assert_eq!(sent.header(name), Some(value), "{name}");
    }
    let mut names: Vec<_> = sent
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "accept",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "openai-beta",
            "user-agent",
            "x-stainless-lang"
        ]
    );
}

/// Codex tries a WebSocket first and goes on over HTTP at once after a 426, but only after that.
#[tokio::test]
async fn a_websocket_is_refused_before_the_provider_is_asked() {
    let proxied = Proxied::new().await;
    for path in ["/v1/responses", "/anthropic/v1/messages", "/v1/models"] {
        let request = proxied.stand.request(Method::GET, path);
        let request = request
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let answer = proxied.stand.send(request).await;
        assert_eq!(answer.status, StatusCode::UPGRADE_REQUIRED, "{path}");
        assert_eq!(answer.headers["x-contexture-failed"], "websocket");
        assert_eq!(answer.headers["upgrade"], "HTTP/1.1");
    }
    assert_eq!(proxied.upstream.received_requests().len(), 0);
    // The same path without the offer is passed on.
    let plain = proxied.stand.request(Method::GET, "/v1/models");
    proxied.stand.send(plain).await;
    assert_eq!(proxied.upstream.received_requests().len(), 1);
}

#[tokio::test]
async fn an_answer_comes_back_as_it_was_sent() {
    let body = "{\n  \"id\": \"x\",  \"choices\":[] }\n";
    let provider = move |_: &Received| {
        Scripted::from_body(200, "application/json; charset=utf-8", body)
            .with_header("x-request-id", "req_1")
            .with_header("openai-processing-ms", "7")
            .with_header("x-ratelimit-remaining-tokens", "9")
            .with_header("set-cookie", "__cf_bm=1")
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let answer = proxied
        .ask("/openai/v1/chat/completions", &chat(&[says("Hi")]))
        .await;
    assert_eq!(answer.text, body);
    assert_eq!(
        answer.headers["content-type"],
        "application/json; charset=utf-8"
    );
    assert_eq!(answer.headers["x-request-id"], "req_1");
    assert_eq!(answer.headers["openai-processing-ms"], "7");
    assert_eq!(answer.headers["x-ratelimit-remaining-tokens"], "9");
    assert_eq!(answer.headers["content-length"], body.len().to_string());
    assert!(!answer.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn events_come_as_they_are_sent() {
    let gate = Gate::new_closed();
    let provider = {
        let gate = gate.clone();
        move |_: &Received| {
            let events = ["one", "two", "three"].map(|word| format!("data: {word}\n\n"));
            Scripted::event_stream(events).gated_by(&gate)
        }
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let request = proxied
        .stand
        .request(Method::POST, "/v1/chat/completions")
        .header("content-type", "application/json")
        .body(chat(&[says("Hi")]).to_string());
    gate.release_chunks(1);
    let mut answer = request.send().await.unwrap();
    // Each event is here before the next one was sent.
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: one\n\n");
    gate.release_chunks(1);
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: two\n\n");
    gate.release_chunks(1);
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: three\n\n");
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_packed_answer_stays_packed_and_is_read() {
    use std::io::Write as _;
    let plain = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "packed words"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    })
    .to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(plain.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let provider = {
        let packed = packed.clone();
        move |_: &Received| {
            Scripted::from_body(200, "application/json", packed.clone())
                .with_header("content-encoding", "gzip")
        }
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let request = unadorned(&proxied, "/v1/chat/completions")
        .header("content-type", "application/json")
        .header("accept-encoding", "gzip")
        .header("x-contexture-wait", "ingest")
        .body(chat(&[says("Hi")]).to_string());
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let head = answer.headers().clone();
    assert_eq!(answer.bytes().await.unwrap(), packed);
    let outcome = proxied.outcome_of(&head).await;
    assert_eq!(outcome["answer"]["output_tokens"], 2, "{outcome}");
}

#[tokio::test]
async fn whatever_is_not_known_passes() {
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), "").await;
    let models = proxied.stand.get("/v1/models").await.ok();
    assert!(models["data"].is_array(), "{models}");
    // An answer of the provider's, not of ours: it has no such path.
    let request = proxied
        .stand
        .request(Method::DELETE, "/openai/v1/files/file-1")
        .header("x-contexture-bypass", "false");
    let answer = proxied.stand.send(request).await;
    assert!(
        !answer.headers.contains_key("x-contexture-failed"),
        "{}",
        answer.text
    );
    let seen = proxied.upstream.received_requests();
    let targets: Vec<_> = seen
        .iter()
        .map(|seen| (seen.method.as_str(), seen.target.as_str()))
        .collect();
    assert_eq!(
        targets,
        [("GET", "/v1/models"), ("DELETE", "/v1/files/file-1")]
    );
    assert!(proxied.conversations().await.is_empty());
}

#[tokio::test]
async fn a_bypass_is_neither_stored_nor_told() {
    let proxied = Proxied::new().await;
    let hidden = [("x-contexture-bypass", "true")];
    let answer = proxied
        .ask_with("/v1/chat/completions", &chat(&[says("Hi")]), &hidden)
        .await;
    answer.ok();
    let ours = answer
        .headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-contexture"));
    assert_eq!(ours.count(), 0);
    assert!(proxied.conversations().await.is_empty());
}
