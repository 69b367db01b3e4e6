//! The client against a scripted server on the loopback.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod secrets;
mod server;
mod tls;

use std::io::Write;
use std::time::Duration;

use contexture_models::{Model, ModelError, ModelRequest, text_response};
use contexture_models_http::{
    ApiKey, ClientError, ClientOptions, HttpModel, Provider, RetryLimits,
};
use contexture_wire::{Format, StreamEvent, lift};

use self::server::{EVENTS, Server, Step, answer, begin, chunk, end, json};

const SSE: &str = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Ба\"}}]}\n\n\
    data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"мако 🌍\"}}]}\n\n\
    data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";
const SAID: &str = "Бамако 🌍";

fn options() -> ClientOptions {
    ClientOptions {
        retries: RetryLimits {
            wait: Duration::ZERO,
            ..RetryLimits::default()
        },
        ..ClientOptions::default()
    }
}

fn model_with(format: Format, server: &Server, options: ClientOptions) -> HttpModel {
    let key = Some(ApiKey::new("sk-secret"));
    let provider = Provider::with_base_url(format, &server.base, key).unwrap();
    HttpModel::with_options(provider, options).unwrap()
}

fn model(server: &Server) -> HttpModel {
    model_with(Format::OpenAiChat, server, options())
}

fn request(format: Format) -> ModelRequest {
    ModelRequest {
        format,
        model: "some/model".into(),
        payload: r#"{"messages":[]}"#.into(),
    }
}

fn chat() -> ModelRequest {
    request(Format::OpenAiChat)
}

fn text(body: &str) -> String {
    let lifted = lift(Format::OpenAiChat, body).unwrap();
    lifted.transcript.items[0].text()
}

fn streaming(pieces: &[&[u8]]) -> Vec<Step> {
    let mut script = vec![begin(EVENTS)];
    script.extend(pieces.iter().map(|piece| chunk(piece)));
    script.push(end());
    script
}

#[tokio::test]
async fn every_provider_is_asked_in_its_way() {
    for (format, path, stream_path, key, word) in [
        (
            Format::OpenAiChat,
            "/chat/completions",
            "/chat/completions",
            "authorization: Bearer sk-secret",
            r#"{"messages":[],"stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        (
            Format::OpenAiResponses,
            "/responses",
            "/responses",
            "authorization: Bearer sk-secret",
            r#"{"messages":[],"stream":true}"#,
        ),
        (
            Format::Anthropic,
            "/v1/messages",
            "/v1/messages",
            "x-api-key: sk-secret",
            r#"{"messages":[],"stream":true}"#,
        ),
        (
            Format::Gemini,
            "/v1beta/models/some%2Fmodel:generateContent",
            "/v1beta/models/some%2Fmodel:streamGenerateContent?alt=sse",
            "x-goog-api-key: sk-secret",
            r#"{"messages":[]}"#,
        ),
    ] {
        let body = text_response(format, "Bamako.");
        let headers = "content-type: application/json\r\nx-request-id: req_1\r\n";
        let reply = || vec![answer("200 OK", headers, &body)];
        let server = Server::new(vec![reply(), reply()]).await;
        let model = model_with(format, &server, options());
        let whole = model.answer(request(format)).await.unwrap();
        assert_eq!(
            (whole.body.as_str(), whole.request_id.as_deref()),
            (body.as_str(), Some("req_1"))
        );
        // A host that cannot stream answers whole.
        let stream = model.stream(request(format)).await.unwrap();
        assert_eq!(stream.request_id(), Some("req_1"));
        assert_eq!(stream.finish().await.unwrap(), whole);
        let requests = server.requests();
        for (asked, path, payload) in [
            (&requests[0], path, r#"{"messages":[]}"#),
            (&requests[1], stream_path, word),
        ] {
            assert!(
                asked.starts_with(&format!("POST {path} HTTP/1.1\r\n")),
                "{asked}"
            );
            assert!(asked.contains(key) && asked.ends_with(payload), "{asked}");
            let version = asked.contains("anthropic-version: 2023-06-01");
            assert_eq!(version, format == Format::Anthropic);
        }
    }
}

#[tokio::test]
async fn a_stream_reads_the_same_however_it_is_cut() {
    let crlf = SSE.replace('\n', "\r\n");
    let noisy = format!("\u{feff}: hello\n\n: comment\nevent: x\nid: 7\nretry: 1\n{SSE}: bye\n");
    for (name, sse) in [("lf", SSE), ("crlf", &crlf), ("noisy", &noisy)] {
        let mut seed = 7_usize;
        for widest in [1, 2, 3, 7, 64, 4096] {
            let mut rest = sse.as_bytes();
            let mut pieces = Vec::new();
            while !rest.is_empty() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (piece, more) = rest.split_at((1 + (seed >> 33) % widest).min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            let server = Server::new(vec![streaming(&pieces)]).await;
            let mut stream = model(&server).stream(chat()).await.unwrap();
            let mut said = String::new();
            while let Some(event) = stream.next().await {
                if let StreamEvent::TextDelta { delta, .. } = event.unwrap() {
                    said += &delta;
                }
            }
            assert_eq!(said, SAID, "{name} by {widest}");
            assert_eq!(text(&stream.finish().await.unwrap().body), SAID);
        }
    }
}

#[tokio::test]
async fn an_answer_may_be_packed() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(SSE.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let (a, b) = packed.split_at(packed.len() / 2);
    let head = begin(&format!("{EVENTS}content-encoding: gzip\r\n"));
    let script = vec![head, chunk(a), chunk(b), end()];
    let server = Server::new(vec![script]).await;
    let stream = model(&server).stream(chat()).await.unwrap();
    assert_eq!(text(&stream.finish().await.unwrap().body), SAID);
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_not() {
    let ok = || json("200 OK", &text_response(Format::OpenAiChat, "Bamako."));
    let limited = || {
        let headers = "content-type: application/json\r\nretry-after: 0\r\n";
        answer(
            "429 Too Many Requests",
            headers,
            r#"{"error":{"message":"slow"}}"#,
        )
    };
    let broken = || json("500 Internal Server Error", "{}");
    for (scripts, kind, asked) in [
        (vec![vec![limited()], vec![broken()], vec![ok()]], "ok", 3),
        (vec![vec![Step::Reset], vec![ok()]], "ok", 2),
        (vec![vec![broken()]; 4], "model_unavailable", 3),
        (vec![vec![limited()]; 4], "model_rate_limited", 3),
        (
            vec![vec![json("401 Unauthorized", "{}")]; 2],
            "model_forbidden",
            1,
        ),
        (
            vec![vec![json("400 Bad Request", "{}")]; 2],
            "model_refused",
            1,
        ),
        (vec![vec![json("302 Found", "")]; 2], "model_refused", 1),
    ] {
        let server = Server::new(scripts).await;
        let answer = model(&server).answer(chat()).await;
        let found = answer.as_ref().err().map_or("ok", ModelError::kind);
        assert_eq!(
            (found, server.requests().len()),
            (kind, asked),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_too_long_a_wait_gets_no_second_call() {
    let headers = "content-type: application/json\r\nretry-after: 31\r\n";
    let body = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let server = Server::new(vec![
        vec![answer("429 Too Many Requests", headers, body)];
        2
    ])
    .await;
    let error = model(&server).answer(chat()).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::RateLimited {
            model: "some/model".into(),
            reason: "HTTP 429: slow down".into(),
            retry_after_ms: Some(31_000),
        }
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_kept_and_not_asked_for_again() {
    let half = &SSE.as_bytes()[..SSE
        .find("data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\"")
        .unwrap()
        + 20];
    let begun = || vec![begin(EVENTS), chunk(half)];
    let mut ended = begun();
    ended.push(end());
    let mut reset = begun();
    reset.push(Step::Reset);
    for script in [begun(), ended, reset] {
        let server = Server::new(vec![script, Vec::new()]).await;
        let mut stream = model(&server).stream(chat()).await.unwrap();
        let mut error = None;
        while let Some(event) = stream.next().await {
            error = event.err();
        }
        assert_eq!(error.unwrap().kind(), "model_unreachable");
        // A reset may overtake what was sent before it.
        let body = stream.partial_response().body;
        assert!(["Ба", ""].contains(&text(&body).as_str()), "{body}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_named() {
    let html = || vec![answer("200 OK", "content-type: text/html\r\n", "<html>")];
    let server = Server::new(vec![html(), html()]).await;
    let model_ = model(&server);
    let expected = "the answer of some/model cannot be read: expected application/json or text/event-stream, got \"text/html\"";
    assert_eq!(
        model_.answer(chat()).await.unwrap_err().to_string(),
        expected
    );
    assert_eq!(
        model_.stream(chat()).await.unwrap_err().to_string(),
        expected
    );
    // Lines without an end, bodies without an end.
    let limits = ClientOptions {
        max_body: 10_000,
        ..options()
    };
    let line = vec![b'x'; 6_000];
    let sse = || streaming(&[b"data: ", &line, &line]);
    let server = Server::new(vec![sse()]).await;
    let stream = model_with(Format::OpenAiChat, &server, limits.clone());
    let stream = stream.stream(chat()).await.unwrap();
    let error = stream.finish().await.unwrap_err().to_string();
    assert!(error.ends_with("it is longer than 10000 bytes"), "{error}");
    let long = json("200 OK", &format!("\"{}\"", "x".repeat(10_000)));
    let server = Server::new(vec![vec![long]]).await;
    let whole = model_with(Format::OpenAiChat, &server, limits);
    let error = whole.answer(chat()).await.unwrap_err().to_string();
    assert!(error.ends_with("it is longer than 10000 bytes"), "{error}");
    // Bytes that are no text.
    let server = Server::new(vec![streaming(&[b"data: \xff\xfe\n\n"])]).await;
    let stream = model(&server).stream(chat()).await.unwrap();
    assert_eq!(stream.finish().await.unwrap_err().kind(), "model_malformed");
}

#[tokio::test]
async fn dropping_a_stream_or_a_call_closes_the_connection() {
    let first = SSE.split_inclusive("\n\n").next().unwrap().as_bytes();
    let script = vec![begin(EVENTS), chunk(first), Step::Hold];
    let mut server = Server::new(vec![script, vec![Step::Hold]]).await;
    let model = model(&server);
    let mut stream = model.stream(chat()).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    assert_eq!(server.told.recv().await, Some("asked"));
    assert_eq!(server.told.recv().await, Some("closed"));
    let call = tokio::spawn(async move { model.answer(chat()).await });
    assert_eq!(server.told.recv().await, Some("asked"));
    call.abort();
    assert_eq!(server.told.recv().await, Some("closed"));
}

#[tokio::test]
async fn silence_is_not_waited_for_for_ever() {
    let first = SSE.split_inclusive("\n\n").next().unwrap().as_bytes();
    let script = vec![begin(EVENTS), chunk(first), Step::Hold];
    let server = Server::new(vec![script]).await;
    let mut stream = model(&server).stream(chat()).await.unwrap();
    for _ in 0..3 {
        stream.next().await.unwrap().unwrap();
    }
    tokio::time::pause();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "some/model gave no more of the answer within 120000 ms"
    );
    assert_eq!(text(&stream.partial_response().body), "Ба");
    tokio::time::resume();
    let mut server = Server::new(vec![vec![Step::Hold]]).await;
    let mut options = options();
    options.retries.limit = 0;
    let model = model_with(Format::OpenAiChat, &server, options);
    let call = tokio::spawn(async move { model.answer(chat()).await });
    assert_eq!(server.told.recv().await, Some("asked"));
    tokio::time::pause();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "some/model gave no answer within 300000 ms"
    );
}

#[tokio::test]
async fn nobody_there_is_said() {
    let server = Server::new(Vec::new()).await;
    let base = server.base.clone();
    drop(server);
    tokio::task::yield_now().await;
    let provider = Provider::with_base_url(Format::OpenAiChat, &base, None).unwrap();
    let model = HttpModel::with_options(provider, options()).unwrap();
    let error = model.answer(chat()).await.unwrap_err();
    assert_eq!(error.kind(), "model_unreachable");
    let error = model.answer(request(Format::Gemini)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the provider speaks openai-chat"),
        "{error}"
    );
}

#[test]
fn a_bad_address_is_named() {
    let why = |base: &str| match Provider::with_base_url(Format::OpenAiChat, base, None) {
        Err(ClientError::BadAddress { why }) => why,
        other => panic!("{other:?}"),
    };
    assert!(why("ftp://host").starts_with("expected http"));
    let secret = why("http://user:hunter2@host");
    assert!(!secret.contains("hunter2"));
    assert!(why("http://host?key=1").contains("query"));
    assert!(!why("no address").is_empty());
    let none = Provider::with_base_url(Format::Ui, "http://host", None).unwrap_err();
    assert_eq!(none.to_string(), "ui is no provider's format");
    let bad = Provider::new(Format::OpenAiChat, ApiKey::new("a\nb")).unwrap();
    assert_eq!(HttpModel::new(bad).unwrap_err(), ClientError::BadKey);
}
