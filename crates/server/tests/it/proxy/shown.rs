//! What clients see of a policy: the answer's bytes, what is said of the cache, marks and previews in what goes out.

use std::sync::atomic::Ordering;

use contexture::Engine;
use contexture_testdata::request_validator;
use contexture_upstream_testkit::{Provider as _, Received, ScriptedProvider};
use serde_json::{Value, json};

use super::never_worse::Hands;
use super::policies::{all, long, sent, with};
use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";
const ANTHROPIC: &str = "/v1/messages";

/// What the provider answers to what was sent last, asked by nobody else.
async fn answered(proxied: &Proxied, path: &str) -> Vec<u8> {
    let body = sent(proxied).pop().unwrap();
    let url = format!("{}{path}", proxied.upstream.base_url());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(url).header("content-type", "application/json");
    let answer = request.body(body).send().await.unwrap();
    answer.bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn a_stream_under_a_policy_is_the_providers_byte_for_byte() {
    let history = [
        says("one"),
        json!({"role": "assistant", "content": "1"}),
        says("two"),
    ];
    let anthropic = json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "stream": true, "messages": history});
    let openai = json!({"model": "gpt-4.1", "stream": true, "messages": history,
        "stream_options": {"include_usage": true}});
    let responses = json!({"model": "gpt-4.1", "stream": true, "input": history});
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "one"}]},
        {"role": "model", "parts": [{"text": "1"}]}, {"role": "user", "parts": [{"text": "two"}]}]});
    let asked = [
        ("anthropic", ANTHROPIC, anthropic),
        ("openai-chat", CHAT, openai),
        ("openai-responses", "/v1/responses", responses),
        (
            "gemini",
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            gemini,
        ),
    ];
    for (format, path, body) in asked {
        let proxied = with("window = { turns = 1 }\npays = \"fits\"\n").await;
        let answer = proxied.ask(path, &body).await;
        assert!(
            answer.headers.contains_key("x-contexture-tokens-saved"),
            "{path}"
        );
        let outcome = proxied.outcome(&answer).await;
        assert!(
            outcome["answer"]["output_tokens"].as_u64() > Some(0),
            "{path}: {outcome}"
        );
        let mut document: Value = serde_json::from_str(&sent(&proxied)[0]).unwrap();
        // The schemas are those of requests without a stream.
        let fields = document.as_object_mut().unwrap();
        fields.retain(|name, _| !name.starts_with("stream"));
        let findings = request_validator(format).validation_errors(&document);
        assert_eq!(findings, Vec::<String>::new(), "{path}: {document}");
        assert_eq!(
            answer.text.as_bytes(),
            answered(&proxied, path).await,
            "{path}"
        );
    }
}

#[tokio::test]
async fn cache_prediction_is_in_header_and_ledger() {
    let proxied = with("limit_tokens = 100000\n").await;
    let mut history = vec![says(&"a long task of many words ".repeat(400))];
    for turn in 0..3 {
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        let outcome = proxied.outcome(&answer).await;
        let of = |name: &str| outcome["predicted"][name].as_u64().unwrap();
        let (read, all) = (of("read"), of("read") + of("written") + of("fresh"));
        let word = if turn == 0 { "miss" } else { "hit" };
        assert_eq!(
            answer.headers["x-contexture-cache"],
            format!("{word}={read}/{all}")
        );
        assert_eq!(read > 0, turn > 0, "{outcome}");
        history.extend([said(&answer), long(turn)]);
        let id = outcome["conversation"].as_str().unwrap();
        let query = [("conversation", id)];
        let ledger = proxied.stand.find("/api/v1/ledger", &query).await.ok();
        let entry = &ledger["entries"][turn];
        assert_eq!(entry["sent"], outcome["predicted"]);
        assert_eq!(
            entry["reported_read_tokens"],
            outcome["answer"]["cache_read_tokens"]
        );
    }
    // Without a policy nobody counts.
    let proxied = Proxied::new().await;
    let answer = proxied.ask(CHAT, &chat(&history)).await;
    assert!(!answer.headers.contains_key("x-contexture-cache"));
}

#[tokio::test]
async fn marks_are_set_where_the_client_sets_none() {
    let proxied = with("cache_marks = true\n").await;
    let validator = request_validator("anthropic");
    let system = "rules that are long enough to be cached ".repeat(300);
    let mut history = Vec::new();
    for turn in 0..4 {
        history.push(long(turn));
        let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "system": system, "messages": history});
        let answer = proxied.ask(ANTHROPIC, &body).await;
        let text = answer.ok()["content"][0]["text"].clone();
        history.push(json!({"role": "assistant", "content": text}));
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(outcome["failed"], Value::Null, "{outcome}");
        let sent = sent(&proxied).pop().unwrap();
        let marks = sent
            .matches(r#""cache_control":{"type":"ephemeral"}"#)
            .count();
        assert!((1..=4).contains(&marks), "turn {turn}: {sent}");
        let document: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(validator.validation_errors(&document), Vec::<String>::new());
        assert_eq!(
            outcome["predicted"]["read"].as_u64() > Some(1_000),
            turn > 0,
            "{outcome}"
        );
    }
    // Neither are too many set where the client moves one by itself.
    let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "system": system, "messages": [long(0)],
        "cache_control": {"type": "ephemeral"}});
    proxied.ask(ANTHROPIC, &body).await.ok();
    let sent = sent(&proxied).pop().unwrap();
    assert!(sent.matches("cache_control").count() <= 4, "{sent}");
}

#[tokio::test]
async fn long_outputs_go_as_previews() {
    let proxied = with("preview = 1000\n").await;
    let output: String = (0..2_000)
        .map(|line| format!("line {line} of the log\n"))
        .collect();
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let tool =
        json!({"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}});
    let history = json!([says("read the log"), {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": output}]);
    let body = json!({"model": "gpt-4.1", "messages": history, "tools": [tool]});
    let answer = proxied.ask(CHAT, &body).await;
    answer.ok();
    let outcome = proxied.outcome(&answer).await;
    assert!(outcome["tokens_saved"].as_i64() > Some(5_000), "{outcome}");
    let document: Value = serde_json::from_str(&sent(&proxied)[0]).unwrap();
    let findings = request_validator("openai-chat").validation_errors(&document);
    assert_eq!(findings, Vec::<String>::new(), "{document}");
    let shown = document["messages"][2]["content"].as_str().unwrap();
    assert!(shown.len() < 3_000, "{shown}");
    assert!(
        shown.contains("line 0 of the log") && shown.contains("line 1999 of the log"),
        "{shown}"
    );
}

#[tokio::test]
async fn preview_that_costs_more_is_not_sent_despite_empty_message() {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let tool =
        json!({"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}});
    // A little longer than what is shown whole: the tool that reads the rest costs more.
    let output = "a line of the log\n".repeat(60);
    for silent in [false, true] {
        let proxied = with("preview = 1000\n").await;
        let mut history = vec![
            says("read the log"),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": "call_1", "content": output}),
        ];
        if silent {
            history.extend([json!({"role": "assistant", "content": ""}), says("and?")]);
        }
        let body = json!({"model": "gpt-4.1", "messages": history, "tools": [tool]});
        proxied.ask(CHAT, &body).await.ok();
        assert_eq!(sent(&proxied), [body.to_string()], "{silent}");
    }
}

#[tokio::test]
async fn a_cache_is_kept_from_the_time_of_asking() {
    let hands = Hands::default();
    let provider = {
        let hands = hands.clone();
        move |received: &Received| {
            // An answer takes four minutes, and the cache keeps for five.
            hands.0.fetch_add(240_000, Ordering::Relaxed);
            ScriptedProvider::default().respond_to(received)
        }
    };
    let engine = Engine::in_memory().with_clock(hands.clone());
    let proxied = Proxied::to(provider, engine, &all("limit_tokens = 100000\n")).await;
    let mark = json!({"type": "ephemeral"});
    let long = json!({"type": "text", "text": "a long task of many words ".repeat(400), "cache_control": mark});
    let mut history = vec![json!({"role": "user", "content": [long]})];
    for (word, pause_ms) in [("miss", 30_000), ("hit", 90_000), ("miss", 0)] {
        let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": history});
        let answer = proxied.ask(ANTHROPIC, &body).await;
        let said = answer.headers["x-contexture-cache"].to_str().unwrap();
        assert!(said.starts_with(word), "{said}");
        let text = answer.ok()["content"][0]["text"].clone();
        history.extend([json!({"role": "assistant", "content": text}), says("and?")]);
        proxied.outcome(&answer).await;
        hands.0.fetch_add(pause_ms, Ordering::Relaxed);
    }
}
