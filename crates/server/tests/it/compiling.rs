//! What a model sees: resolved, compiled, explained, compacted, read again.

use contexture::Target;
use reqwest::Method;
use serde_json::{Value, json};

use crate::messages::{said, talk};
use crate::test_support::Stand;

const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"Hi."}],
  "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;

fn call(output: &str) -> Value {
    json!({"items": [
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": output},
    ]})
}

fn for_model() -> Value {
    json!({"to": "anthropic", "model": "claude-sonnet-5"})
}

#[tokio::test]
async fn a_branch_is_resolved_and_compiled() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let asked = json!({"fragments": [{"name": "role", "data": "You are kind."}]});
    let resolved = stand.post(&format!("{path}/resolve"), &asked).await.ok();
    assert_eq!(resolved["system_prompt"], "<role>You are kind.</role>");
    assert_eq!(resolved["messages"][0]["parts"][0]["text"], "Hello");

    let mut asked = for_model();
    asked["system"] = json!([{"name": "hint", "data": "Be brief."}]);
    asked["params"] = json!({"temperature": 0.10});
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    assert_eq!(compiled["payload"]["model"], "claude-sonnet-5");
    assert_eq!(compiled["payload"]["temperature"], 0.1);
    assert!(
        compiled["payload"]["system"]
            .to_string()
            .contains("Be brief."),
        "{compiled}"
    );
    assert!(compiled["report"]["totals"]["tokens"].as_u64().unwrap() > 0);
    let again = stand.post(&format!("{path}/compile"), &asked).await.ok();
    assert_eq!(compiled, again);
    // A text alone is a system prompt, too.
    let mut plain = for_model();
    plain["system"] = json!("You count <b> and &.");
    let plain = stand.post(&format!("{path}/compile"), &plain).await.ok();
    let system = plain["payload"]["system"].to_string();
    assert!(system.contains("You count <b> and &."), "{system}");
    let explained = stand.post(&format!("{path}/explain"), &asked).await.ok();
    assert_eq!(explained["report"]["totals"], compiled["report"]["totals"]);
    assert!(
        explained["table"].as_str().unwrap().contains("hint")
            || !explained["table"].as_str().unwrap().is_empty()
    );
    assert!(explained["html"].as_str().unwrap().contains("<html"));
}

#[tokio::test]
async fn what_cannot_be_compiled_is_refused() {
    let stand = Stand::new().await;
    let path = format!("{}/compile", talk(&stand, "a", &["Hello"]).await);
    let refused = async |field: &str, value: Value| {
        let mut asked = for_model();
        asked[field] = value;
        stand.post(&path, &asked).await
    };
    refused("to", json!("ui")).await.refused(400, "bad_body");
    refused("to", json!("nothing"))
        .await
        .refused(400, "bad_body");
    refused("model", json!("nobody-knows-it"))
        .await
        .refused(422, "unknown_model");
    refused("renderer", json!("html"))
        .await
        .refused(400, "bad_body");
    refused("system", json!([1]))
        .await
        .refused(422, "bad_fragment");
    assert_eq!(refused("window", json!(10)).await.problem().0, 422);
    refused("tool_choice", json!("must"))
        .await
        .refused(400, "bad_body");
    let mut tight = for_model();
    tight["window"] = json!(1_000);
    tight["reserve"] = json!(100);
    tight["reminders"] = json!(["remember ".repeat(2_000)]);
    let problem = stand.post(&path, &tight).await;
    problem.refused(422, "does_not_fit");
    let told = problem.json();
    assert_eq!(told["allowed"], 900, "{told}");
    let segments = told["segments"].as_array().unwrap();
    let sum: u64 = segments
        .iter()
        .filter_map(|part| part["tokens"].as_u64())
        .sum();
    assert_eq!(told["needed"], sum, "{told}");
    let empty = format!("{}/compile", talk(&stand, "b", &[]).await);
    stand
        .post(&empty, &for_model())
        .await
        .refused(422, "nothing_to_say");
}

#[tokio::test]
async fn an_older_part_is_stood_for_and_comes_back() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    for n in 0..6 {
        let part =
            |text: &str| json!([{"type": "text", "text": format!("{text} {n} ").repeat(100)}]);
        let round = json!({"messages": [
            {"id": "", "role": "user", "parts": part("question")},
            {"id": "", "role": "assistant", "parts": part("answer")},
        ]});
        stand.post(&format!("{path}/messages"), &round).await.ok();
    }
    let at = format!("{path}/compactions");
    let dry = stand
        .post(&at, &json!({"model": "claude-sonnet-5", "dry_run": true}))
        .await;
    assert_eq!(
        (dry.status.as_u16(), &dry.ok()["compaction"]),
        (200, &Value::Null)
    );
    let made = stand
        .post(
            &at,
            &json!({"model": "claude-sonnet-5", "summary": "They counted."}),
        )
        .await;
    assert_eq!(made.status, 201);
    let made = made.ok();
    assert!(
        made["summary"].to_string().contains("They counted."),
        "{made}"
    );
    let node = made["compaction"].as_str().unwrap();
    let list = stand.get(&at).await.ok();
    assert_eq!(list["compactions"][0]["compaction"], node);
    let back = || stand.request(Method::DELETE, &format!("{at}/{node}"));
    assert_eq!(stand.send(back()).await.status, 204);
    assert_eq!(stand.get(&at).await.ok()["compactions"], json!([]));
    stand.send(back()).await.refused(422, "not_in_effect");
    let refused = stand
        .post(&at, &json!({"model": "claude-sonnet-5", "keep": 101}))
        .await;
    refused.refused(400, "bad_body");
    stand
        .post(&at, &json!({"model": "claude-sonnet-5", "first": node}))
        .await
        .refused(400, "bad_body");
}

#[tokio::test]
async fn what_a_preview_leaves_out_is_read_by_its_link() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Look"]).await;
    let output: String = (1..=2000)
        .map(|n| format!("line {n} of the output\n"))
        .collect();
    stand
        .post(&format!("{path}/messages"), &call(&output))
        .await
        .ok();
    let mut asked = for_model();
    asked["preview"] = json!(2000);
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    // The tool that follows such links is offered with the first of them.
    assert_eq!(compiled["own_tools"], json!(["read_context"]));
    let payload = compiled["payload"]["messages"].to_string();
    let start = payload
        .find("context://")
        .unwrap_or_else(|| panic!("{payload}"));
    let link: String = payload[start..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || ":/-_".contains(*c))
        .collect();
    let read = format!("{path}/read");
    let part = stand
        .find(&read, &[("link", &link), ("from", "1000"), ("to", "1001")])
        .await
        .ok();
    assert_eq!(
        part["text"],
        "line 1000 of the output\nline 1001 of the output\n"
    );
    let found = stand
        .find(&read, &[("link", &link), ("text", "LINE 77 ")])
        .await
        .ok();
    assert_eq!(
        (&found["matches"], &found["found"][0]["line"]),
        (&json!(1), &json!(77))
    );
    let found = stand
        .find(&read, &[("link", &link), ("regex", "^line 19[0-9]{2} ")])
        .await
        .ok();
    assert_eq!(found["matches"], 100);
    for (name, value) in [
        ("regex", "("),
        ("text", ""),
        ("around", "1000000"),
        ("from", "-1"),
        ("to", "0"),
    ] {
        stand
            .find(&read, &[("link", &link), (name, value)])
            .await
            .refused(400, "bad_query");
    }
    for link in [
        "",
        "context://vfs/../../etc/passwd",
        "file:///etc/passwd",
        "context://",
        "context://x\u{0}",
        "context://%2e%2e",
        "/etc/passwd",
        &"x".repeat(5000),
    ] {
        let answer = stand.find(&read, &[("link", link)]).await;
        assert_eq!(answer.problem(), (400, "bad_query".to_owned()), "{link}");
    }
}

/// The model of the newest answer, in the format of its provider, unless another is named.
#[tokio::test]
async fn a_wrong_member_of_a_policy_is_named() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    for (policy, named) in [
        (json!({"previw": 3}), "previw"),
        (json!({"clear": 4}), "such as clear = { keep_recent"),
        (json!(4), "the name of a policy, or a policy"),
    ] {
        let body = json!({"model": "gpt-4o", "policy": policy});
        let refused = stand.post(&format!("{path}/compile"), &body).await;
        refused.refused(400, "bad_body");
        assert!(refused.text.contains(named), "{named}: {}", refused.text);
    }
}

#[tokio::test]
async fn model_and_format_default_to_the_last_answers() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    for what in ["compile", "explain", "compactions"] {
        let refused = stand.post(&format!("{path}/{what}"), &json!({})).await;
        refused.refused(400, "bad_body");
        assert_eq!(refused.json()["faults"][0]["member"], "model", "{what}");
    }
    let chat = stand
        .engine
        .conversation("a")
        .open_existing()
        .await
        .unwrap();
    let call = chat
        .compile(&Target::anthropic("claude-sonnet-5"))
        .await
        .unwrap();
    chat.record(&call, ANSWER).await.unwrap();
    stand
        .post(&format!("{path}/messages"), &said("And now?"))
        .await
        .ok();
    let asked = async |body: Value| stand.post(&format!("{path}/compile"), &body).await;
    let compiled = asked(json!({})).await.ok();
    assert_eq!(compiled["payload"]["model"], "claude-sonnet-5");
    assert!(compiled["payload"]["max_tokens"].is_number(), "{compiled}");
    let named = asked(json!({"model": "gpt-5.4"})).await.ok();
    assert_eq!(named["payload"]["model"], "gpt-5.4");
    assert!(named["payload"]["input"].is_array(), "{named}");
    let format = asked(json!({"to": "openai-chat"})).await.ok();
    assert_eq!(format["payload"]["model"], "claude-sonnet-5");
    assert!(format["payload"]["messages"].is_array(), "{format}");
}
