//! Tools that may not be offered and secrets that may not be sent, and requests that try to get around it.

use std::io::Write as _;

use contexture::Engine;
use contexture_upstream_testkit::ScriptedProvider;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::policies::{all, sent};
use super::{Proxied, chat, said, says};
use crate::test_support::Answer;

const CHAT: &str = "/v1/chat/completions";
const KEY: &str = "sk-proj-T3BlbkFJ4c8R2mQz7LkW9xYp1NvB6dHs";

async fn over(config: &str) -> Proxied {
    Proxied::to(ScriptedProvider::default(), Engine::in_memory(), config).await
}

/// Sends a body as it is, packed as it says.
async fn post(proxied: &Proxied, path: &str, body: impl Into<Vec<u8>>, packing: &str) -> Answer {
    let request = proxied.stand.request(Method::POST, path);
    let request = request
        .header("content-type", "application/json")
        .header("content-encoding", packing)
        .header("x-contexture-wait", "ingest");
    proxied.stand.send(request.body(body.into())).await
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}})
}

fn names(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    let tools = request["tools"].as_array().into_iter().flatten();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn unreadable_model_is_rejected_by_restricting_model_route() {
    let body = format!(
        r#"{{"model":"gpt-4.1","messages":[{{"role":"user","content":"{KEY}"}}],"tools":[{}]}}"#,
        tool("rm")
    );
    let twice = body.replacen('{', r#"{"model":"x","#, 1);
    let marked = format!("\u{feff}{body}");
    let listed = body.replacen(r#""gpt-4.1""#, r#"["gpt-4.1"]"#, 1);
    let bodies = [
        (&*twice, "identity"),
        (&marked, "identity"),
        (&listed, "identity"),
        (&body, "pack200"),
        (&body, "gzip"),
        ("", "identity"),
    ];
    for policy in ["tools = { deny = [\"rm\"] }", "redact = true"] {
        let route = "[[routes]]\nmodel = \"gpt-4*\"\npolicy = \"safe\"\n";
        let more = format!("[policies.safe]\n{policy}\n[policies.open]\n{route}");
        let proxied = over(&more).await;
        for (body, packing) in bodies {
            let answer = post(&proxied, CHAT, body, packing).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{packing} {body}");
            assert_eq!(answer.headers["x-contexture-failed"], "unreadable");
        }
        assert_eq!(sent(&proxied), Vec::<String>::new(), "{policy}");
    }
}

#[tokio::test]
async fn unreadable_body_passes_when_no_route_restricts_it() {
    let more = "[policies.open]\n[policies.safe]\ntools = { deny = [\"rm\"] }\n\
        [[routes]]\nmodel = \"gpt-4*\"\npolicy = \"open\"\n\
        [[routes]]\nmodel = \"gpt-4*\"\nupstream = \"anthropic\"\npolicy = \"safe\"\n";
    let proxied = over(more).await;
    let twice = r#"{"model":"x","model":"gpt-4.1","messages":[]}"#;
    post(&proxied, CHAT, twice, "identity").await;
    // A policy of tools has nothing to say of what asks no model.
    post(&proxied, "/anthropic/v1/files", twice, "identity").await;
    assert_eq!(sent(&proxied), [twice, twice]);
}

#[tokio::test]
async fn a_packed_request_gets_the_route_of_its_model() {
    let more = "[policies.safe]\nredact = true\ntools = { deny = [\"rm\"] }\n\
        [[routes]]\nmodel = \"gpt-4*\"\npolicy = \"safe\"\n";
    let proxied = over(more).await;
    let mut body = chat(&[says("Hi")]);
    body["tools"] = json!([tool("ls")]);
    let packed = |body: &Value| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(body.to_string().as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    // Nothing has to be taken out of it: it goes as it came.
    let answer = post(&proxied, CHAT, packed(&body), "gzip").await;
    answer.ok();
    assert_eq!(proxied.outcome(&answer).await["failed"], Value::Null);
    let received = proxied.upstream.received_requests();
    assert_eq!(received[0].header("content-encoding"), Some("gzip"));
    assert_eq!(received[0].body, packed(&body));
    body["tools"] = json!([tool("rm"), tool("ls")]);
    body["messages"] = json!([says("Hi"), says(KEY)]);
    post(&proxied, CHAT, packed(&body), "gzip").await.ok();
    let received = proxied.upstream.received_requests();
    assert_eq!(received[1].header("content-encoding"), None);
    let body = String::from_utf8(received[1].body.to_vec()).unwrap();
    assert_eq!(names(&body), ["ls"]);
    assert!(body.contains("[redacted: API key]"), "{body}");
}

#[tokio::test]
async fn the_model_of_a_path_is_known_whatever_is_asked_of_it() {
    let more =
        "[policies.safe]\nredact = true\n[[routes]]\nmodel = \"gemini-*\"\npolicy = \"safe\"\n";
    let proxied = over(more).await;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": KEY}]}]});
    for verb in ["generateContent", "countTokens", "embedContent"] {
        let path = format!("/v1beta/models/gemini-2.5-pro:{verb}");
        post(&proxied, &path, body.to_string(), "identity").await;
        let sent = sent(&proxied).pop().unwrap();
        assert!(!sent.contains(KEY), "{verb}: {sent}");
    }
}

#[tokio::test]
async fn a_path_is_known_however_it_is_written() {
    let proxied = over(&all("tools = { deny = [\"rm\"] }")).await;
    let mut body = chat(&[says("Hi")]);
    body["tools"] = json!([tool("rm"), tool("ls")]);
    for path in [
        "/v1/chat/completion%73",
        "/v1/chat/completion%2573",
        "/v1//chat//completions//",
        "/v1/Chat/Completions",
    ] {
        post(&proxied, path, body.to_string(), "identity").await;
        let received = proxied.upstream.received_requests();
        let last = received.last().unwrap();
        assert_eq!(last.target, path);
        let text = String::from_utf8(last.body.to_vec()).unwrap();
        assert_eq!(names(&text), ["ls"], "{path}");
    }
    let body = json!({"contents": [], "tools": [{"functionDeclarations": [{"name": "rm"}]}]});
    for path in [
        "/gemini/v1beta/models/gemini-2.5-pro%3AgenerateContent",
        "/gemini/v1beta/mod%65ls/gemini-2.5-pro:generateConten%74",
    ] {
        post(&proxied, path, body.to_string(), "identity").await;
        let received = proxied.upstream.received_requests();
        let last = received.last().unwrap();
        assert_eq!(Some(&*last.target), path.strip_prefix("/gemini"));
        assert_eq!(&last.body[..], br#"{"contents":[]}"#, "{path}");
    }
}

#[tokio::test]
async fn the_routes_word_on_tools_holds_for_ours_too() {
    let long = format!("line\n{}", "words and words\n".repeat(100));
    let history = [
        says("Look"),
        json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
            "function": {"name": "ls", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "a", "content": long}),
    ];
    let own = "memory = { tools = true }\npreview = 600\npays = \"fits\"\n";
    let without = "deny = [\"read_context\", \"create_memory\"]";
    for (rules, expected) in [("", 4), (without, 0), ("allow = [\"ls\"]", 0)] {
        let more = format!(
            "[policies.own]\n{own}[policies.safe]\ntools = {{ {rules} }}\n[[routes]]\npolicy = \"safe\"\n"
        );
        let proxied = over(&more).await;
        let named = [("x-contexture-policy", "own")];
        let answer = proxied.ask_with(CHAT, &chat(&history), &named).await;
        said(&answer);
        let sent = sent(&proxied).pop().unwrap();
        assert!(!sent.contains(&*long.replace('\n', "\\n")), "{sent}");
        assert_eq!(names(&sent).len(), expected, "{rules}: {sent}");
    }
}
