//! No path, host or header of a request leads anywhere but to the configured host.

use std::time::Duration;

use contexture::Engine;
use contexture_upstream_testkit::{Received, ScriptedProvider, UpstreamResponse as Scripted};
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Proxied, says};

/// Sends bytes as they are and reads until the server closes.
async fn raw(proxied: &Proxied, text: &str) -> String {
    let mut stream = TcpStream::connect(proxied.stand.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A server that neither answers nor closes is the failure.
    tokio::time::timeout(Duration::from_secs(30), read)
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_request_cannot_say_where_it_goes() {
    let proxied = Proxied::new().await;
    let host = proxied.stand.address;
    let lines = [
        format!("GET http://169.254.169.254/v1/models HTTP/1.1\r\nhost: {host}"),
        "GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1:1".to_owned(),
        format!("GET //evil.example/v1/models HTTP/1.1\r\nhost: {host}"),
        format!("GET /openai//evil.example/v1 HTTP/1.1\r\nhost: {host}"),
        format!("GET /openai/../../x HTTP/1.1\r\nhost: {host}"),
        format!("GET /v1/%2e%2e/x HTTP/1.1\r\nhost: {host}"),
        format!("GET /openai/@evil.example/ HTTP/1.1\r\nhost: {host}"),
    ];
    for line in &lines {
        let answer = raw(&proxied, &format!("{line}\r\nconnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 "), "{line}: {answer}");
    }
    // Those that were passed on all came here, with the host's own name.
    for seen in proxied.upstream.received_requests() {
        let ours = proxied.upstream.base_url();
        assert_eq!(
            seen.header("host"),
            ours.strip_prefix("http://"),
            "{}",
            seen.target
        );
    }
    let body = json!({"model": "gpt-4.1", "api_base": "http://evil.example", "base_url": "http://evil.example",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}},
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]});
    let answer = proxied.ask("/v1/chat/completions", &body).await;
    answer.ok();
    assert_eq!(
        proxied.outcome(&answer).await["failed"],
        serde_json::Value::Null
    );
}

#[tokio::test]
async fn redirects_come_back_and_are_not_followed() {
    let provider = |_: &Received| {
        Scripted::text(307, "").with_header("location", "http://169.254.169.254/latest/meta-data")
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let url = format!("http://{}/v1/models", proxied.stand.address);
    let answer = client.get(url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(proxied.upstream.received_requests().len(), 1);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), "").await;
    let body = json!({"model": "gpt-4.1", "messages": [says("Hi")]});
    let page = [("origin", "https://evil.example")];
    let answer = proxied.ask_with("/v1/chat/completions", &body, &page).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let rebound = [("host", "evil.example")];
    let answer = proxied
        .ask_with("/v1/chat/completions", &body, &rebound)
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(proxied.upstream.received_requests().is_empty());
}
