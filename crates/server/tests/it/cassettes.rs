//! Every recorded exchange goes through the server as it was: the request's bytes to the provider, the answer's bytes back.

use contexture_testdata::{Exchange, exchanges};
use contexture_upstream_testkit::{ReplayingProvider, Upstream};
use reqwest::Method;
use serde_json::{Map, Value};

use crate::test_support::{Answer, Stand};

/// Formats of recordings and of upstreams.
const FORMATS: [(&str, &str); 5] = [
    ("openai-chat", "openai"),
    ("openai-responses", "openai"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("bedrock", "bedrock"),
];

#[tokio::test]
async fn every_recording_goes_through_as_it_is() {
    for (recorded, format) in FORMATS {
        let upstream = Upstream::start(ReplayingProvider::for_format(recorded)).await;
        let base = upstream.base_url();
        let config = format!("[upstreams.there]\nformat = \"{format}\"\nbase_url = \"{base}\"\n");
        let server = Stand::with(&config).await;
        let exchanges = exchanges(recorded);
        let mut counts = Vec::new();
        for exchange in &exchanges {
            let answer = send(&server, exchange).await;
            let id = answer.headers.get("x-contexture-request");
            counts.extend(id.map(|id| (id.to_str().unwrap().to_owned(), told_counts(&answer))));
            let first = first(&exchanges, exchange);
            let what = format!("{} {}", exchange.file, exchange.index);
            assert_eq!(answer.status.as_u16(), first.status, "{what}");
            let whole = first.response.as_ref().map(|body| body.get());
            let binary = first.event_stream.as_deref().map(String::from_utf8_lossy);
            let expected = first.stream.as_deref().or(whole);
            assert!(
                binary.as_deref().or(expected) == Some(&answer.text),
                "{what}"
            );
            assert_eq!(headers(&answer), first.headers, "{what}");
        }
        let received = upstream.received_requests();
        assert_eq!(received.len(), exchanges.len());
        for (exchange, received) in exchanges.iter().zip(&received) {
            assert_eq!(received.target, exchange.path_and_query());
            assert!(received.body == exchange.request.get(), "{}", exchange.file);
        }
        check_usage(&server, recorded, &counts).await;
    }
}

/// Input, cache reads, cache writes and output.
type Counts = [u64; 4];

/// The record of calls has what each answer itself says that it used, to the token, and usage is the sum of that.
async fn check_usage(server: &Stand, recorded: &str, told: &[(String, Counts)]) {
    assert!(!told.is_empty(), "{recorded}");
    let usage = loop {
        let usage = server.get("/api/v1/usage?by=day").await.ok()["total"].clone();
        if usage["calls"].as_u64() >= Some(told.len() as u64) {
            break usage;
        }
        tokio::task::yield_now().await;
    };
    let mut sum = Counts::default();
    for (id, counts) in told {
        let call = server.get(&format!("/api/v1/calls/{id}")).await.ok();
        let tokens = ["input", "cache_read", "cache_written", "output"]
            .map(|name| call["tokens"][name].as_u64().unwrap_or(0));
        assert_eq!(&tokens, counts, "{recorded}: {call}");
        sum.iter_mut()
            .zip(counts)
            .for_each(|(sum, one)| *sum += one);
    }
    let names = ["input", "cache_read", "cache_written", "output"];
    let total = names.map(|name| usage[format!("{name}_tokens")].as_u64().unwrap());
    assert_eq!(total, sum, "{recorded}: {usage}");
    assert_eq!(usage["calls"], told.len(), "{recorded}");
}

/// What an answer says that it used, read as plain text: the last of each figure in the objects that are named so.
fn told_counts(answer: &Answer) -> Counts {
    let mut figures = Map::new();
    for name in ["\"usage\"", "\"usageMetadata\""] {
        for (at, _) in answer.text.match_indices(name) {
            let rest = answer.text[at + name.len()..].trim_start();
            let Some(rest) = rest.strip_prefix(':') else {
                continue;
            };
            let value = serde_json::Deserializer::from_str(rest)
                .into_iter::<Value>()
                .next();
            if let Some(Ok(Value::Object(object))) = value {
                // A stream counts up: what comes later holds, unless it is left out.
                figures.extend(object.into_iter().filter(|(_, value)| !value.is_null()));
            }
        }
    }
    let of = |path: &str| {
        let mut names = path.split('.');
        let first = figures.get(names.next().unwrap());
        let found = names.fold(first, |value, name| value?.get(name));
        found.and_then(Value::as_u64).unwrap_or(0)
    };
    let sum = |paths: &[&str]| paths.iter().map(|path| of(path)).sum();
    // Each format has names of its own; those of Anthropic and OpenAI are alike where they differ in meaning.
    let (read, written) = ("cache_read_input_tokens", "cache_creation_input_tokens");
    [
        sum(&[
            "prompt_tokens",
            "input_tokens",
            read,
            written,
            "promptTokenCount",
            "toolUsePromptTokenCount",
            "inputTokens",
            "cacheReadInputTokens",
            "cacheWriteInputTokens",
        ]),
        sum(&[
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            read,
            "cachedContentTokenCount",
            "cacheReadInputTokens",
        ]),
        sum(&[
            written,
            "cacheWriteInputTokens",
            "prompt_tokens_details.cache_write_tokens",
            "input_tokens_details.cache_write_tokens",
        ]),
        sum(&[
            "completion_tokens",
            "output_tokens",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "outputTokens",
        ]),
    ]
}

async fn send(server: &Stand, exchange: &Exchange) -> Answer {
    let path = format!("/there{}", exchange.path_and_query());
    let request = server
        .request(Method::POST, &path)
        .header("content-type", "application/json");
    server
        .send(request.body(exchange.request.get().to_owned()))
        .await
}

/// The first recording of the same request, which is the one that is replayed.
fn first<'a>(exchanges: &'a [Exchange], exchange: &Exchange) -> &'a Exchange {
    let key = |exchange: &Exchange| {
        (
            exchange.path_and_query().to_owned(),
            exchange.request.get().to_owned(),
        )
    };
    exchanges
        .iter()
        .find(|other| key(other) == key(exchange))
        .unwrap()
}

/// The answer's headers but for what the server says itself and what frames a body.
fn headers(answer: &Answer) -> Vec<(String, String)> {
    let headers = answer.headers.iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let is_added = |name: &str| {
        name.starts_with("x-contexture-")
            || ["date", "content-length", "transfer-encoding"].contains(&name)
    };
    headers.filter(|(name, _)| !is_added(name)).collect()
}
