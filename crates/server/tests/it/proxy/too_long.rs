//! Providers that refuse what is too long by a count of their own: the client never sees it.

use std::sync::Mutex;

use contexture::Engine;
use contexture::catalogue::Encoding;
use contexture::tokens::counter_for;
use contexture_upstream_testkit::{Provider, Received, UpstreamResponse};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::Proxied;

const MODEL: &str = "claude-sonnet-4-5";
/// Tokens of input that the provider takes, as the policy says.
const LIMIT: u64 = 3_500;
/// The policy of these tests: a window of 4,000 tokens, of which requests keep 500 for their answer.
const POLICY: &str = "[policies.small]\nlimit_tokens = 4000\n[[routes]]\npolicy = \"small\"\n";

/// A provider that counts so many hundredths of the way from our lower to our upper bound, and refuses what is above its
/// limit.
struct Counting {
    place: u64,
    counts: Mutex<Vec<u64>>,
    /// How many requests it answers before it breaks off every connection.
    answers: usize,
    /// Whether its answers say what they were billed for. A usage of zero teaches nothing.
    reports_usage: bool,
    /// Whether it begins to stream before it refuses.
    refuses_in_stream: bool,
    /// Whether it refuses whatever it is sent, and does not say by which count.
    refuses_all: bool,
}

impl Counting {
    fn at(place: u64) -> Self {
        Self {
            place,
            counts: Mutex::default(),
            answers: usize::MAX,
            reports_usage: true,
            refuses_in_stream: false,
            refuses_all: false,
        }
    }

    fn count(&self, body: &Value) -> u64 {
        let counter = counter_for(Encoding::ClaudeV1);
        let messages = body["messages"].as_array().unwrap();
        let texts = messages.iter().map(|message| &message["content"]);
        let texts = texts.flat_map(|content| match content {
            Value::String(text) => vec![text.clone()],
            parts => {
                let parts = parts.as_array().unwrap().iter();
                let text = parts.map(|part| part["text"].as_str().unwrap().to_owned());
                text.collect()
            }
        });
        let tokens = texts.map(|text| {
            let count = counter.count(&text);
            count.low + (count.high - count.low) * self.place / 100
        });
        tokens.sum::<u64>() + 5 * messages.len() as u64
    }
}

impl Provider for Counting {
    fn respond_to(&self, received: &Received) -> UpstreamResponse {
        let body = received.json();
        let tokens = self.count(&body);
        let mut counts = self.counts.lock().unwrap();
        counts.push(tokens);
        if counts.len() > self.answers {
            return UpstreamResponse::no_response();
        }
        if tokens > LIMIT || self.refuses_all {
            let message = match self.refuses_all {
                true => "prompt is too long".to_owned(),
                false => format!("prompt is too long: {tokens} tokens > {LIMIT} maximum"),
            };
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
            if self.refuses_in_stream {
                return event_stream(&[message_start(tokens), json!({"type": "ping"}), error]);
            }
            return UpstreamResponse::json(400, &error);
        }
        let text = format!("Answer {}.", counts.len());
        let tokens = if self.reports_usage { tokens } else { 0 };
        let usage = json!({"input_tokens": tokens, "output_tokens": 5});
        if body["stream"] == true {
            return streamed(&text, tokens);
        }
        UpstreamResponse::json(
            200,
            &json!({"id": format!("msg_{}", counts.len()), "type": "message", "role": "assistant", "model": MODEL,
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": usage}),
        )
    }
}

/// A streamed answer.
fn streamed(text: &str, tokens: u64) -> UpstreamResponse {
    event_stream(&[
        message_start(tokens),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ])
}

fn message_start(tokens: u64) -> Value {
    json!({"type": "message_start", "message": {"id": "msg_s", "type": "message", "role": "assistant", "model": MODEL,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": tokens, "output_tokens": 1}}})
}

fn event_stream(events: &[Value]) -> UpstreamResponse {
    UpstreamResponse::event_stream(events.iter().map(|event| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    }))
}

async fn proxied(provider: Counting, engine: Engine) -> Proxied {
    let upstream = contexture_upstream_testkit::Upstream::start(provider).await;
    let config = super::configuration(&upstream.base_url(), POLICY);
    // A scripted host is nobody's own, so what it does is said.
    let config = config.replace(
        "format = \"anthropic\"\n",
        "format = \"anthropic\"\noverflow = \"refuses\"\n",
    );
    let stand = crate::test_support::Stand::over(engine, &config).await;
    Proxied { upstream, stand }
}

fn turn(history: &mut Vec<Value>, number: usize) {
    let words = format!("Turn {number}, and what was said of it at some length; ");
    history.push(json!({"role": "user", "content": words.repeat(12)}));
}

/// A history that fits by the likely count, and not by that of the provider.
fn too_long(name: &str) -> Value {
    let provider = Counting::at(92);
    let mut history: Vec<Value> = Vec::new();
    for number in 0.. {
        turn(&mut history, number);
        let body = body(&history, false);
        if provider.count(&body) > LIMIT {
            return body;
        }
        history.push(json!({"role": "assistant", "content": format!("{name} {number}.")}));
    }
    unreachable!("it grows")
}

fn body(history: &[Value], stream: bool) -> Value {
    json!({"model": MODEL, "max_tokens": 500, "messages": history, "stream": stream})
}

/// The attempts of the calls on record.
async fn attempts(proxied: &Proxied) -> Vec<u64> {
    let listed = proxied.stand.get("/api/v1/calls?limit=100").await.ok();
    let calls = listed["calls"].as_array().unwrap();
    calls
        .iter()
        .map(|call| call["attempts"].as_u64().unwrap())
        .collect()
}

/// Talks for 60 turns, in which the client sees no refusal; returns how many requests the provider got, and the attempts of the
/// calls on record.
async fn talk(provider: Counting, stream: bool) -> (usize, Vec<u64>) {
    let proxied = proxied(provider, Engine::in_memory()).await;
    let mut history: Vec<Value> = Vec::new();
    for number in 0..60 {
        turn(&mut history, number);
        let answer = proxied.ask("/v1/messages", &body(&history, stream)).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "turn {number}: {}",
            answer.text
        );
        assert_eq!(answer.headers.get("x-contexture-failed"), None);
        proxied.outcome(&answer).await;
        history.push(json!({"role": "assistant", "content": format!("Answer {number}.")}));
    }
    let sent = proxied.upstream.received_requests().len();
    (sent, attempts(&proxied).await)
}

fn silent() -> Counting {
    Counting {
        reports_usage: false,
        ..Counting::at(92)
    }
}

#[tokio::test]
async fn refused_request_is_sent_once_more_and_shorter() {
    // One request was refused: from then on its count is known.
    let (sent, attempts) = talk(silent(), false).await;
    assert_eq!(sent, 61);
    assert_eq!(attempts.iter().sum::<u64>(), 61);
    assert_eq!(attempts.iter().max(), Some(&2));
}

#[tokio::test]
async fn refused_stream_is_sent_once_more_and_shorter() {
    let (sent, attempts) = talk(silent(), true).await;
    assert_eq!((sent, attempts.iter().sum::<u64>()), (61, 61));
}

/// A provider may say that a request is too long after it has begun to answer it with status 200.
#[tokio::test]
async fn refusal_inside_a_stream_is_not_seen_either() {
    let provider = Counting {
        refuses_in_stream: true,
        ..silent()
    };
    let (sent, attempts) = talk(provider, true).await;
    assert_eq!((sent, attempts.iter().sum::<u64>()), (61, 61));
}

/// At most three requests go out for one answer: what was sent first, a shorter one, and the client's own if it was not the first.
/// If all are refused, the client is told what was said of its own.
#[tokio::test]
async fn client_is_told_the_refusal_of_its_own_request_last() {
    for refuses_in_stream in [false, true] {
        let provider = || Counting {
            refuses_in_stream,
            refuses_all: true,
            ..Counting::at(92)
        };
        let mut fitting = too_long("Answer");
        fitting["stream"] = json!(refuses_in_stream);
        let mut rewritten = fitting.clone();
        let messages = rewritten["messages"].as_array_mut().unwrap();
        let question = messages.pop().unwrap();
        messages.extend(messages.clone());
        messages.push(question);
        for (body, sends) in [(fitting, 2), (rewritten, 3)] {
            let proxied = proxied(provider(), Engine::in_memory()).await;
            let answer = proxied.ask("/v1/messages", &body).await;
            let status = match refuses_in_stream {
                true => StatusCode::OK,
                false => StatusCode::BAD_REQUEST,
            };
            assert_eq!(answer.status, status, "{}", answer.text);
            assert!(
                answer.text.contains("prompt is too long"),
                "{}",
                answer.text
            );
            let received = proxied.upstream.received_requests();
            let lengths: Vec<usize> = received.iter().map(|one| one.body.len()).collect();
            assert_eq!(lengths.len(), sends, "{lengths:?}");
            assert!(lengths[1] < lengths[0], "{lengths:?}");
            let own = if sends == 2 { 0 } else { 2 };
            assert_eq!(received[own].json(), body);
        }
    }
}

#[tokio::test]
async fn usage_of_earlier_answers_prevents_refusals() {
    let (sent, attempts) = talk(Counting::at(92), false).await;
    assert_eq!(sent, 60);
    assert_eq!(attempts.iter().max(), Some(&1));
}

#[tokio::test]
async fn bounds_that_do_not_hold_are_corrected_by_the_count() {
    // A quarter more than our upper bound.
    let proxied = proxied(Counting::at(225), Engine::in_memory()).await;
    let mut history: Vec<Value> = Vec::new();
    for number in 0..60 {
        turn(&mut history, number);
        let answer = proxied.ask("/v1/messages", &body(&history, false)).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "turn {number}: {}",
            answer.text
        );
        proxied.outcome(&answer).await;
        history.push(json!({"role": "assistant", "content": format!("Answer {number}.")}));
    }
    let sent = proxied.upstream.received_requests().len();
    assert!(sent <= 63, "{sent}");
}

#[tokio::test]
async fn two_refused_at_once_are_both_answered() {
    let proxied = proxied(Counting::at(92), Engine::in_memory()).await;
    let histories = ["a", "b"].map(too_long);
    let asked = histories
        .each_ref()
        .map(|body| proxied.ask("/v1/messages", body));
    let [first, second] = asked;
    let (first, second) = tokio::join!(first, second);
    for answer in [&first, &second] {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        proxied.outcome(answer).await;
    }
    let sent = proxied.upstream.received_requests().len();
    assert!((3..=4).contains(&sent), "{sent}");
}

/// What a refusal says is stored before anything is sent again.
#[tokio::test]
async fn server_that_ends_behind_a_refusal_has_learned_from_it() {
    let engine = Engine::in_memory();
    let body = too_long("Answer");
    let broken = Counting {
        answers: 1,
        ..Counting::at(92)
    };
    let first = proxied(broken, engine.clone()).await;
    let answer = first.ask("/v1/messages", &body).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{}", answer.text);
    assert_eq!(first.upstream.received_requests().len(), 2);
    drop(first);
    let second = proxied(Counting::at(92), engine).await;
    let answer = second.ask("/v1/messages", &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(second.upstream.received_requests().len(), 1);
}

#[tokio::test]
async fn host_of_which_nothing_is_known_gets_the_upper_bound() {
    let upstream = contexture_upstream_testkit::Upstream::start(Counting::at(99)).await;
    let config = super::configuration(&upstream.base_url(), POLICY);
    let stand = crate::test_support::Stand::over(Engine::in_memory(), &config).await;
    let proxied = Proxied { upstream, stand };
    let answer = proxied.ask("/v1/messages", &too_long("Answer")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(proxied.upstream.received_requests().len(), 1);
}
