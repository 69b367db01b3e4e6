//! Callers and providers that are slow, silent or gone: what they hold is bounded, and comes back.

use std::net::SocketAddr;
use std::time::Duration;

use contexture::Engine;
use contexture_upstream_testkit::{Gate, Received, UpstreamResponse as Scripted};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::wire::{all, statuses};
use crate::proxy::{Proxied, chat, says};
use crate::test_support::Stand;

const CHAT: &str = "/v1/chat/completions";

/// How many streams at a time.
const STREAMS: usize = 200;

/// Begins a request and never ends it; gives what is answered until the server closes.
async fn begun(address: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    all(&mut stream).await
}

#[tokio::test]
async fn a_request_that_does_not_come_to_its_end_is_given_up() {
    let provider = |_: &Received| Scripted::text(200, "yes");
    let limits = "[server.limits]\nheader_seconds = 1\nkeep_alive_seconds = 1\nbody_seconds = 1\nconcurrent = 1\n";
    let proxied = Proxied::to(provider, Engine::in_memory(), limits).await;
    let address = proxied.stand.address;
    let post = |path: &str, framing: &str, body: &str| {
        let json = "content-type: application/json";
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{json}\r\n{framing}\r\n\r\n{body}")
    };
    let silent = begun(address, "").await;
    assert_eq!(statuses(&silent), [0; 0]);
    let head = begun(address, "POST /v1/files HTTP/1.1\r\nhost: local").await;
    assert!(!head.contains(" 200 "), "{head}");
    let second = begun(
        address,
        "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\nGET /health",
    )
    .await;
    assert_eq!(statuses(&second).first(), Some(&200));
    for path in ["/v1/files", "/api/v1/conversations"] {
        for (framing, body) in [
            ("content-length: 100", ""),
            ("content-length: 100", "{\"messages\""),
            ("transfer-encoding: chunked", "5\r\n{\"mes"),
            ("transfer-encoding: chunked", "2\r\n{}\r\n"),
        ] {
            let came = begun(address, &post(path, framing, body)).await;
            assert_eq!(statuses(&came), [400], "{path} {framing} {body}: {came}");
            assert!(came.contains("bad_body"), "{came}");
        }
    }
    assert!(proxied.upstream.received_requests().is_empty());
    // Each of them was the only one that may run.
    proxied.stand.get("/openai/v1/models").await;
    assert_eq!(proxied.upstream.received_requests().len(), 1);
}

/// Something always comes, and never enough: how long the whole body may take is limited too. The time of an answer begins
/// behind it.
#[tokio::test]
async fn a_body_that_trickles_in_is_given_up() {
    let provider = |_: &Received| Scripted::text(200, "yes");
    let limits =
        "[server.limits]\nbody_seconds = 30\nbody_total_seconds = 2\nrequest_seconds = 1\n";
    let proxied = Proxied::to(provider, Engine::in_memory(), limits).await;
    for path in [CHAT, "/api/v1/conversations"] {
        let mut stream = TcpStream::connect(proxied.stand.address).await.unwrap();
        let head = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000";
        let head = format!("POST {path} HTTP/1.1\r\n{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let trickle = async {
            // An error means that the server has closed, which is what is waited for.
            while writer.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let mut came = Vec::new();
        let answered = async {
            while !String::from_utf8_lossy(&came).contains("body_total_seconds") {
                let read = reader.read_buf(&mut came).await.unwrap();
                assert!(read > 0, "{path}: {}", String::from_utf8_lossy(&came));
            }
        };
        tokio::select! {
            () = answered => {}
            () = trickle => panic!("{path}: closed without an answer"),
        }
        assert_eq!(statuses(&String::from_utf8_lossy(&came)), [400], "{path}");
    }
    assert!(proxied.upstream.received_requests().is_empty());
}

#[tokio::test]
async fn a_connection_is_kept_longer_than_a_head_may_take() {
    let limits = "[server.limits]\nheader_seconds = 1\nkeep_alive_seconds = 4\n";
    let stand = Stand::with(limits).await;
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut stream = TcpStream::connect(stand.address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(request).await.unwrap();
        let mut came = Vec::new();
        while !came.ends_with(b"}") {
            assert!(stream.read_buf(&mut came).await.unwrap() > 0);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    // Nothing more comes: the end is the server's.
    assert_eq!(all(&mut stream).await, "");
}

/// A provider that sends an event, and the next ones when it is told to.
fn speaking(gate: &Gate) -> impl Fn(&Received) -> Scripted + Send + Sync + use<> {
    let gate = gate.clone();
    move |request| {
        let delta = json!({"role": "assistant", "content": "word "});
        let chunk = |delta: Value, end: Value| {
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1",
                "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
        };
        let events = [
            chunk(delta.clone(), Value::Null),
            chunk(delta, Value::Null),
            chunk(json!({}), json!("stop")),
        ];
        let events = events.map(|event| format!("data: {event}\n\n"));
        let answer = Scripted::event_stream(events);
        match request.body.is_empty() {
            true => Scripted::text(200, "yes"),
            false => answer.gated_by(&gate),
        }
    }
}

/// Asks for a stream of its own and waits for its first event.
async fn stream(stand: &Stand, number: usize) -> Response {
    let mut body = chat(&[says(&format!("Hi, I am number {number}"))]);
    body["stream"] = json!(true);
    let request = stand.request(Method::POST, CHAT);
    let request = request.header("content-type", "application/json");
    let mut answer = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let first = answer.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"data: "));
    answer
}

async fn streams(stand: &Stand, count: usize) -> Vec<Response> {
    let mut open = Vec::new();
    for number in 0..count {
        open.push(stream(stand, number).await);
    }
    open
}

#[tokio::test]
async fn streams_that_wait_are_counted_and_come_back() {
    let gate = Gate::new_closed();
    let limits = format!("[server.limits]\nconcurrent = {STREAMS}\n");
    let mut proxied = Proxied::to(speaking(&gate), Engine::in_memory(), &limits).await;
    let mut open = streams(&proxied.stand, STREAMS).await;
    let refused = proxied.stand.get("/openai/v1/models").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    // Half of the clients leave; the provider is told by its connection.
    let stay = open.split_off(STREAMS / 2);
    drop(open);
    let left = proxied.upstream.wait_until(|seen| seen.left == STREAMS / 2);
    let left = tokio::time::timeout(Duration::from_secs(60), left).await;
    assert_eq!(left.unwrap().answered, 0);
    let again = streams(&proxied.stand, STREAMS / 2).await;
    let refused = proxied.stand.get("/openai/v1/models").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    // The others go on to their end.
    gate.release_chunks(STREAMS * 2);
    let mut ids = Vec::new();
    for answer in stay.into_iter().chain(again) {
        let id = answer.headers()["x-contexture-request"].to_str().unwrap();
        ids.push(id.to_owned());
        assert!(answer.text().await.unwrap().contains("stop"));
    }
    for id in ids {
        let path = format!("/api/v1/requests/{id}");
        let known = proxied.stand.get(&path).await.ok();
        assert_eq!(known["failed"], Value::Null, "{known}");
    }
    // Nothing runs any more: the end does not wait for the time it has.
    proxied.stand.stop();
    let Proxied { stand, upstream } = proxied;
    let engine = stand.engine.clone();
    let ended = tokio::time::timeout(Duration::from_secs(20), stand.stopped()).await;
    assert!(ended.is_ok(), "something runs on");
    drop(upstream);
    let list = contexture::store::ListConversations {
        limit: Some(2 * STREAMS),
        ..Default::default()
    };
    let owner = contexture::Owner::local();
    let kept = engine.list_conversations(&owner, list).await.unwrap();
    // What came of those that left is kept too: a conversation for each.
    assert_eq!(kept.conversations.len(), STREAMS + STREAMS / 2);
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let gate = Gate::new_closed();
    let limits = "[server.limits]\nconcurrent = 1\n";
    let proxied = Proxied::to(speaking(&gate), Engine::in_memory(), limits).await;
    let mut answer = stream(&proxied.stand, 1).await;
    // Time passes as soon as nobody has anything to do.
    tokio::time::pause();
    let broke = loop {
        match answer.chunk().await {
            Ok(Some(_)) => {}
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    tokio::time::resume();
    assert!(broke, "the client is told that something is missing");
    proxied.upstream.wait_until(|seen| seen.left == 1).await;
    proxied
        .stand
        .get("/openai/v1/models")
        .await
        .text
        .clone_into(&mut String::new());
    assert_eq!(proxied.upstream.received_requests().len(), 2);
}
