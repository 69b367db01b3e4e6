//! Amazon Bedrock: models named in the path, signed requests, binary event streams.

use contexture::Engine;
use contexture_testdata::{Exchange, exchanges};
use contexture_upstream_testkit::{Received, ReplayingProvider, UpstreamResponse};
use reqwest::Method;
use serde_json::{Value, json};

use super::Proxied;
use crate::test_support::Answer;

const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=AKIA/20261122/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=00ff";

/// Asks as AWS's own clients do: signed, and with the path as the client encoded it.
async fn ask(proxied: &Proxied, exchange: &Exchange, signature: &str) -> (Answer, Vec<u8>) {
    let path = exchange.path_and_query();
    let request = proxied
        .stand
        .request(Method::POST, path)
        .header("content-type", "application/json")
        .header("x-amz-date", "20261122T220000Z")
        .header("authorization", signature)
        .header("x-contexture-wait", "ingest")
        .body(exchange.request.get().to_owned());
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.unwrap().to_vec();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let answer = Answer {
        status,
        headers,
        text,
    };
    (answer, bytes)
}

#[tokio::test]
async fn signed_calls_pass_byte_for_byte_and_are_kept() {
    let proxied = Proxied::to(
        ReplayingProvider::for_format("bedrock"),
        Engine::in_memory(),
        "",
    )
    .await;
    let (mut streams, mut count) = (0, 0);
    for exchange in exchanges("bedrock") {
        // Some of the whole answers are enough here; streams are few.
        if exchange.event_stream.is_none() && count > 8 {
            continue;
        }
        let (answer, bytes) = ask(&proxied, &exchange, SIGNATURE).await;
        let whole = exchange.response.as_ref().map(|body| body.get().as_bytes());
        let expected = exchange.event_stream.as_deref().or(whole).unwrap();
        assert!(bytes == expected, "{}", exchange.file);
        let received = proxied.upstream.received_requests();
        let sent = received.last().unwrap();
        assert_eq!(sent.target, exchange.path_and_query());
        assert_eq!(sent.body, exchange.request.get().as_bytes());
        assert_eq!(sent.header("authorization"), Some(SIGNATURE));
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(
            outcome["failed"],
            Value::Null,
            "{}: {outcome}",
            exchange.file
        );
        assert!(outcome["answer"]["head"].is_string(), "{outcome}");
        if exchange.event_stream.is_some() {
            assert!(
                outcome["answer"]["output_tokens"].as_u64() > Some(0),
                "{outcome}"
            );
            streams += 1;
        }
        count += 1;
    }
    assert_eq!(streams, 2);
    assert!(!proxied.conversations().await.is_empty());
}

#[tokio::test]
async fn counting_tokens_is_no_call() {
    let provider = |_: &Received| UpstreamResponse::json(200, &json!({"inputTokens": 3}));
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let path = "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/count-tokens";
    let body = json!({"input": {"converse": {"messages": [{"role": "user", "content": [{"text": "x"}]}]}}});
    let answer = proxied.ask(path, &body).await;
    assert_eq!(answer.ok()["inputTokens"], 3);
    assert_eq!(proxied.upstream.received_requests()[0].target, path);
    assert!(proxied.conversations().await.is_empty());
}

#[tokio::test]
async fn a_model_in_the_path_may_be_a_resource_name() {
    let answer = json!({"output": {"message": {"role": "assistant", "content": [{"text": "Bamako."}]}}, "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}, "metrics": {"latencyMs": 1}});
    let provider = move |_: &Received| UpstreamResponse::json(200, &answer);
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse";
    let body =
        json!({"messages": [{"role": "user", "content": [{"text": "The capital of Mali?"}]}]});
    let answer = proxied.ask(path, &body).await;
    answer.ok();
    assert_eq!(proxied.upstream.received_requests()[0].target, path);
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(outcome["answer"]["input_tokens"], 3, "{outcome}");
    assert_eq!(proxied.conversations().await.len(), 1);
}

#[tokio::test]
async fn errors_of_the_proxy_have_the_shape_of_the_provider() {
    let proxied = Proxied::to(
        |_: &Received| UpstreamResponse::no_response(),
        Engine::in_memory(),
        "",
    )
    .await;
    let body = json!({"messages": [{"role": "user", "content": [{"text": "x"}]}]});
    let answer = proxied
        .ask("/model/amazon.nova-lite-v1%3A0/converse", &body)
        .await;
    assert_eq!(answer.status, 502);
    assert!(answer.json()["message"].is_string(), "{}", answer.text);
    assert_eq!(
        answer.headers["x-amzn-errortype"],
        "ServiceUnavailableException"
    );
}
