//! Models that bind their thinking to what they were sent.

use std::sync::Mutex;

use contexture::Engine;
use contexture_upstream_testkit::{Provider, Received, UpstreamResponse};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::Proxied;
use super::policies::sent;

const MODEL: &str = "claude-fable-5-2";

/// Signs each answer's thinking, and refuses it behind anything but what it was answered to.
#[derive(Default)]
struct Binding {
    /// What each signature was answered to.
    bound: Mutex<Vec<Vec<Value>>>,
}

impl Provider for Binding {
    fn respond_to(&self, received: &Received) -> UpstreamResponse {
        let body: Value = serde_json::from_slice(&received.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let mut bound = self.bound.lock().unwrap();
        for (at, message) in messages.iter().enumerate() {
            let thinking = message.pointer("/content/0/signature");
            let Some(number) = thinking.and_then(Value::as_str) else {
                continue;
            };
            if bound[number.parse::<usize>().unwrap()] != messages[..at] {
                let error = json!({"type": "error", "error": {"type": "invalid_request_error",
                    "message": "The block is bound to a different conversation"}});
                return UpstreamResponse::json(400, &error);
            }
        }
        let signature = bound.len().to_string();
        bound.push(messages.clone());
        let content = json!([
            {"type": "thinking", "thinking": "Hm.", "signature": signature},
            {"type": "text", "text": format!("Answer {signature}.")}
        ]);
        UpstreamResponse::json(
            200,
            &json!({"id": format!("msg_{signature}"), "type": "message", "role": "assistant", "model": MODEL,
                "content": content, "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 10, "output_tokens": 5}}),
        )
    }
}

#[tokio::test]
async fn what_is_thought_behind_a_rewrite_stays_behind_one() {
    let policies = "[policies.small]\nlimit_tokens = 2000\n[policies.large]\nlimit_tokens = 100000\nclear = {}\n\
        [[routes]]\npolicy = \"small\"\n";
    let proxied = Proxied::to(Binding::default(), Engine::in_memory(), policies).await;
    let mut history: Vec<Value> = Vec::new();
    for turn in 0..24 {
        let words = format!("Turn {turn}, and what was said of it at some length; ");
        history
            .push(json!({"role": "user", "content": [{"type": "text", "text": words.repeat(12)}]}));
        let body = json!({"model": MODEL, "max_tokens": 500, "messages": history});
        // Of the large policy's own accord nothing would be changed.
        let policy = if turn % 4 == 3 { "large" } else { "small" };
        let headers = [("x-contexture-policy", policy)];
        let answer = proxied.ask_with("/v1/messages", &body, &headers).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "turn {turn}: {}",
            answer.text
        );
        // A policy that fails open would change nothing, and show nothing.
        assert_eq!(answer.headers.get("x-contexture-failed"), None);
        proxied.outcome(&answer).await;
        history.push(json!({"role": "assistant", "content": answer.json()["content"]}));
    }
    let sent = sent(&proxied);
    let kept = sent
        .iter()
        .filter(|body| body.contains("signature"))
        .count();
    assert!(kept > 4, "{kept} of 24 requests hold thinking");
}
