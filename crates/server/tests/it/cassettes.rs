//! Every recorded exchange goes through the server as it was: the request's bytes to the provider, the answer's bytes back.

use contexture_testdata::{Exchange, exchanges};
use contexture_upstream_testkit::{ReplayingProvider, Upstream};
use reqwest::Method;

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
        for exchange in &exchanges {
            let answer = send(&server, exchange).await;
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
    }
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
