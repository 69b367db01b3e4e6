//! Formats are told by what a text holds.

use contexture_sessions::{SessionError, SessionFormat, detect_format};

fn check(text: &str, name: &str, expected: &str) {
    let found = match detect_format(text, name) {
        Ok(detected) => detected.format.as_str().to_owned(),
        Err(SessionError::Unknown { found }) => format!("unknown: {found}"),
        Err(SessionError::NotJson { line, .. }) => format!("not json: {line}"),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn each_format_by_its_marks() {
    let cases = [
        (r#"[{"role":"user","content":"hi"}]"#, "openai-chat"),
        (
            r#"{"model":"gpt","messages":[{"role":"user","content":"hi"}]}"#,
            "openai-chat",
        ),
        (
            r#"[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}]"#,
            "anthropic",
        ),
        (
            r#"{"model":"claude-x","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#,
            "anthropic",
        ),
        (
            r#"{"model":"claude-x","messages":[{"role":"system","content":"hi"}]}"#,
            "openai-chat",
        ),
        (
            r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
            "gemini",
        ),
        (r#"[{"role":"user","parts":[{"text":"hi"}]}]"#, "gemini"),
        (
            r#"[{"id":"a","role":"user","parts":[{"type":"text","text":"hi"}]}]"#,
            "ui",
        ),
        (
            r#"{"id":"c","messages":[{"id":"a","role":"user","parts":[{"type":"text","text":"hi"}]}]}"#,
            "ui",
        ),
        (r#"{"model":"gpt","input":"hi"}"#, "openai-responses"),
        (
            r#"[{"type":"message","role":"user","content":"hi"}]"#,
            "items",
        ),
        (r#"{"items":[]}"#, "items"),
        (r#"{"history":[],"info":{}}"#, "swe-agent"),
        (r#"[{"task_id":1,"traj":[]}]"#, "tau-bench"),
        (
            r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{}}"#,
            "claude-code",
        ),
        (
            "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"a\"}\n{\"type\":\"user\",",
            "claude-code",
        ),
        (
            "{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{}}\n",
            "codex",
        ),
        (
            "\u{feff}[{\"role\":\"user\",\"content\":\"hi\"}]",
            "openai-chat",
        ),
    ];
    for (text, expected) in cases {
        check(text, "", expected);
    }
}

#[test]
fn nothing_is_guessed() {
    check("[]", "", "unknown: an empty array");
    check("42", "", "unknown: the JSON value 42");
    check(r#"{"a":1,"b":2}"#, "", "unknown: an object with `a`, `b`");
    check(
        "{\"a\":1}\n{\"a\":2}\n",
        "",
        "unknown: JSON lines such as {\"a\":1}",
    );
    check(
        "{\"a\":1}\n{\"a\":2}\n",
        "rollout-1.jsonl",
        "unknown: JSON lines such as {\"a\":1}",
    );
    check(
        "{\"id\":\"a\",\"timestamp\":\"t\"}\n{\"type\":\"message\"}\n",
        "rollout-1.jsonl",
        "codex",
    );
    check("hello", "", "not json: 1");
    check(r#"{"history": [{"role":"user""#, "x.traj", "not json: 1");
    let message = detect_format("[]", "").unwrap_err().to_string();
    assert!(
        message.contains("claude-code, codex or deepagents"),
        "{message}"
    );
    let error = "claude".parse::<SessionFormat>().unwrap_err().to_string();
    assert!(
        error.starts_with("unknown session format \"claude\": expected openai-chat,"),
        "{error}"
    );
}
