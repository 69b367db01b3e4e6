//! The script's answers have the providers' shapes and follow from what is asked.

use contexture_testdata::{Validator, schema};
use contexture_upstream_testkit::{ScriptedProvider, Upstream};
use serde_json::{Value, json};

use crate::{exchange, post};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/scripted:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/scripted:streamGenerateContent";

/// A request that says this text in the format of its path.
fn says(target: &str, text: &str) -> Value {
    let message = json!({"role": "user", "content": text});
    match target {
        CHAT | MESSAGES => json!({"model": "scripted", "max_tokens": 9, "messages": [message]}),
        RESPONSES => json!({"model": "scripted", "input": [message]}),
        _ => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    }
}

/// The status and the body of the answer.
async fn ask(upstream: &Upstream, target: &str, body: &Value) -> (u16, String) {
    let answer = send(upstream, target, body).await;
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

async fn send(upstream: &Upstream, target: &str, body: &Value) -> Vec<u8> {
    exchange(upstream, &post(target, body.to_string().as_bytes())).await
}

async fn document(upstream: &Upstream, target: &str, body: &Value) -> Value {
    let (status, text) = ask(upstream, target, body).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn whole_answers_have_the_provider_s_shape() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let formats = [
        (CHAT, "openai.chat.response"),
        (RESPONSES, "openai.responses.response"),
        (MESSAGES, "anthropic.messages.response"),
        (GEMINI, "gemini.GenerateContentResponse"),
    ];
    for (target, name) in formats {
        let validator = Validator::new(&schema(name));
        for text in ["hello", "upstream: call weather {\"city\": \"Paris\"}"] {
            let document = document(&upstream, target, &says(target, text)).await;
            assert_eq!(
                validator.validation_errors(&document),
                Vec::<String>::new(),
                "{name}: {document}"
            );
            let calls = text.contains("call");
            assert_eq!(document.to_string().contains("weather"), calls);
        }
    }
}

#[tokio::test]
async fn outputs_of_tools_are_repeated() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let asked = json!({"role": "user", "content": "upstream: call weather"});
    let output = "18 degrees";
    let bodies = [
        (
            CHAT,
            json!({"messages": [asked, {"role": "tool", "tool_call_id": "1", "content": output}]}),
        ),
        (
            RESPONSES,
            json!({"input": [asked, {"type": "function_call_output", "call_id": "1", "output": output}]}),
        ),
        (
            MESSAGES,
            json!({"messages": [asked, {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": output}]}
            ]}]}),
        ),
        (
            GEMINI,
            json!({"contents": [{"role": "user", "parts": [
                {"functionResponse": {"name": "weather", "response": {"result": output}}}
            ]}]}),
        ),
    ];
    for (target, body) in bodies {
        let document = document(&upstream, target, &body).await.to_string();
        assert!(document.contains("The tool says: "), "{document}");
        assert!(document.contains(output), "{document}");
        assert!(!document.contains("weather"), "{document}");
    }
}

#[tokio::test]
async fn streams_say_the_same_as_whole_answers() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    for target in [CHAT, RESPONSES, MESSAGES, GEMINI_STREAM] {
        let mut body = says(target, "upstream: call weather {\"city\": \"Paris\"}");
        let mut target = target.to_owned();
        if target == GEMINI_STREAM {
            target.push_str("?alt=sse");
        } else {
            body["stream"] = true.into();
        }
        let (status, sent) = ask(&upstream, &target, &body).await;
        assert_eq!(status, 200);
        for word in ["look ", "weather", "Paris", "\"I "] {
            assert!(sent.contains(word), "{word} in {sent}");
        }
    }
    let (_, array) = ask(&upstream, GEMINI_STREAM, &says(GEMINI_STREAM, "hello")).await;
    let array: Vec<Value> = serde_json::from_str(&array).unwrap();
    assert_eq!(
        array.last().unwrap()["candidates"][0]["finishReason"],
        "STOP"
    );
}

#[tokio::test]
async fn errors_come_when_they_are_asked_for() {
    for (target, kind) in [
        (CHAT, "server_error"),
        (RESPONSES, "server_error"),
        (MESSAGES, "api_error"),
        (GEMINI, "INTERNAL"),
    ] {
        let upstream = Upstream::start(ScriptedProvider::default()).await;
        let body = says(target, "upstream: status 500 once");
        let (status, text) = ask(&upstream, target, &body).await;
        assert_eq!(status, 500);
        assert!(text.contains(kind), "{text}");
        assert_eq!(ask(&upstream, target, &body).await.0, 200);
        let always = says(target, "upstream: silence");
        for _ in 0..2 {
            assert!(send(&upstream, target, &always).await.is_empty());
        }
    }
}

#[tokio::test]
async fn what_was_said_before_is_read_from_the_cache() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let long = "many words ".repeat(200);
    let mut body = says(CHAT, &long);
    let cached = |document: &Value| {
        document["usage"]["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap()
    };
    let first = document(&upstream, CHAT, &body).await;
    assert_eq!(cached(&first), 0);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "yes"}));
    messages.push(json!({"role": "user", "content": "and?"}));
    let second = document(&upstream, CHAT, &body).await;
    assert_eq!(cached(&second), 512);
    assert_eq!(
        second["choices"][0]["message"]["content"],
        "Answer 2: naïve, 東京, 🦀."
    );
}

#[tokio::test]
async fn counts_and_models_are_answered() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let count = document(
        &upstream,
        "/v1/messages/count_tokens",
        &says(MESSAGES, "hello"),
    )
    .await;
    assert!(count["input_tokens"].as_u64() > Some(0));
    let count = document(
        &upstream,
        "/v1beta/models/scripted:countTokens",
        &says(GEMINI, "hello"),
    )
    .await;
    assert!(count["totalTokens"].as_u64() > Some(0));
    for (target, extra, first) in [
        ("/v1/models", "", "/data/0/id"),
        (
            "/v1/models",
            "anthropic-version: 2023-06-01\r\n",
            "/data/0/display_name",
        ),
        ("/v1/models/scripted", "", "/id"),
        ("/v1beta/models", "", "/models/0/displayName"),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nconnection: close\r\n{extra}\r\n");
        let answer = String::from_utf8(exchange(&upstream, request.as_bytes()).await).unwrap();
        let document: Value =
            serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(document.pointer(first).unwrap(), "scripted");
    }
}
