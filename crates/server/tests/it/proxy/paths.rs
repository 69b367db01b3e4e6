//! No path, host or header of a request leads anywhere but to the configured host.

use std::time::Duration;

use contexture::Engine;
use contexture_upstream_testkit::{
    Received, ScriptedProvider, Upstream, UpstreamResponse as Scripted,
};
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Proxied, configuration, says};
use crate::test_support::Stand;

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

#[tokio::test]
async fn no_gateway_can_decode_a_path_into_another() {
    let proxied = Proxied::new().await;
    let before = proxied.upstream.received_requests().len();
    for trick in [
        "..%2f..%2fadmin",
        "%252e%252e/admin",
        "..;/admin",
        "x;y=1",
        "a%2fb",
        "a%5c..%5cb",
        "%c0%ae%c0%ae/x",
        "a%00b",
        "a%23b",
    ] {
        for prefix in ["/openai/v1/", "/v1/", "/v1beta/", "/v1/files/"] {
            let line = format!("GET {prefix}{trick} HTTP/1.1\r\nhost: localhost");
            let answer = raw(&proxied, &format!("{line}\r\nconnection: close\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{line}: {answer}");
            assert!(answer.contains("x-contexture-failed: bad_path"), "{answer}");
        }
    }
    assert_eq!(proxied.upstream.received_requests().len(), before);
    // Within an id a slash is a slash, and goes as it came.
    for path in ["/v1/models/org%2Fname", "/model/arn%3Aaws%3Ax%2Fy/converse"] {
        proxied.stand.get(path).await;
        let seen = proxied.upstream.received_requests();
        assert_eq!(seen.last().unwrap().target, path);
    }
}

#[tokio::test]
async fn methods_that_nobody_knows_are_not_forwarded() {
    let proxied = Proxied::new().await;
    for method in ["TRACE", "FOO", "post", "Get", "PROPFIND", "TRACK", "DEBUG"] {
        for (path, shape) in [
            ("/v1/models", "\"error\""),
            ("/anthropic/v1/models", "\"error\""),
        ] {
            let line = format!("{method} {path} HTTP/1.1\r\nhost: localhost");
            let answer = raw(&proxied, &format!("{line}\r\nconnection: close\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 405 "), "{line}: {answer}");
            assert!(answer.contains("allow: GET,HEAD,POST"), "{answer}");
            assert!(answer.contains(shape), "{answer}");
        }
    }
    assert!(proxied.upstream.received_requests().is_empty());
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let line = format!("{method} /v1/files/1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0");
        raw(&proxied, &format!("{line}\r\nconnection: close\r\n\r\n")).await;
        assert_eq!(
            proxied.upstream.received_requests().last().unwrap().method,
            method
        );
    }
}

#[tokio::test]
async fn base_urls_with_and_without_version_both_work() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    for base in [upstream.base_url(), format!("{}/v1", upstream.base_url())] {
        let stand = Stand::with(&configuration(&base, "")).await;
        for path in ["/v1/chat/completions", "/v1/messages", "/openai/v1/models"] {
            stand
                .post(path, &json!({"model": "m", "messages": [says("Hi")]}))
                .await;
            let seen = upstream.received_requests();
            let expected = path.trim_start_matches("/openai");
            assert_eq!(seen.last().unwrap().target, expected, "{base}");
        }
    }
}

#[tokio::test]
async fn a_missing_or_doubled_version_is_told() {
    let proxied = Proxied::new().await;
    let body = json!({"model": "m", "messages": [says("Hi")]});
    for (path, meant, shape) in [
        ("/chat/completions", "/v1/chat/completions?", "error"),
        ("/v1/v1/chat/completions", "/v1/chat/completions?", "error"),
        ("/responses", "/v1/responses?", "error"),
        ("/models", "/v1/models?", "error"),
        ("/messages", "/v1/messages?", "error"),
        ("/v1/v1/messages", "/v1/messages?", "error"),
        (
            "/openai/v1/v1/chat/completions",
            "/v1/chat/completions?",
            "error",
        ),
        ("/anthropic/v1/v1/messages", "/v1/messages?", "error"),
        (
            "/v1/v1beta/models/gemini-2.5-flash:generateContent",
            "/v1beta/models/gemini-2.5-flash:generateContent?",
            "error",
        ),
        (
            "/models/gemini-2.5-flash:generateContent",
            "/v1beta/models/gemini-2.5-flash:generateContent?",
            "error",
        ),
    ] {
        let answer = proxied.ask(path, &body).await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.text
        );
        assert_eq!(
            answer.headers["x-contexture-failed"], "unknown_path",
            "{path}"
        );
        let message = answer.json()[shape]["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains(&format!("did you mean {meant}")),
            "{path}: {message}"
        );
    }
    assert!(proxied.upstream.received_requests().is_empty());
    // Some hosts have no version in their paths.
    let answer = proxied.ask("/openai/chat/completions", &body).await;
    assert_eq!(answer.status, StatusCode::OK);
}
