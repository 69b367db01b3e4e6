//! The programs of `docs/loops.md` run as they stand, against a scripted provider, and go on after they were killed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_upstream_testkit::{Received, Upstream, UpstreamResponse};
use serde_json::{Value, json};

use super::installed::Installed;
use crate::test_support::Stand;

const TURNS: usize = 40;

/// Calls a tool when a person speaks, and answers when the outputs are there. A history that a provider refuses is refused.
fn answer(received: &Received, count: usize) -> UpstreamResponse {
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap());
        }
        match message["tool_call_id"].as_str() {
            Some(id) if !open.contains(&id) => return refusal("an output without its call"),
            Some(id) => open.retain(|open| *open != id),
            None if message["role"] == "user" && !open.is_empty() => {
                return refusal("a call without its output");
            }
            None => {}
        }
    }
    let names = body["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = names
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    if !["weather", "trains", "hotels", "read_context"]
        .iter()
        .all(|name| names.contains(name))
    {
        return refusal("a tool is missing");
    }
    let last = messages
        .iter()
        .rev()
        .find(|message| message["role"] != "system")
        .unwrap();
    let message = if last["role"] == "tool" {
        json!({"role": "assistant", "content": format!("Answer {count}.")})
    } else {
        let call = |n: usize| {
            let name = ["weather", "trains", "hotels"][(count + n) % 3];
            let function = json!({"name": name, "arguments": format!("{{\"city\":\"{count}\"}}")});
            json!({"id": format!("call_{count}_{n}"), "type": "function", "function": function})
        };
        json!({"role": "assistant", "content": null, "tool_calls": [call(0), call(1)]})
    };
    let finish = if message["content"].is_null() {
        "tool_calls"
    } else {
        "stop"
    };
    UpstreamResponse::json(
        200,
        &json!({"id": format!("c{count}"), "object": "chat.completion", "created": 1, "model": "gpt-4o",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020}}),
    )
}

fn refusal(why: &str) -> UpstreamResponse {
    UpstreamResponse::json(
        400,
        &json!({"error": {"message": why, "type": "invalid_request_error"}}),
    )
}

async fn check(language: &str, file: &str) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let count = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    let upstream = Upstream::start(move |received: &Received| {
        answer(received, asked.fetch_add(1, Ordering::Relaxed))
    })
    .await;
    let stand = Stand::new().await;
    let folder = tempfile::tempdir().unwrap();
    installed.link(folder.path());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loops.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, program) = page.split_once(&format!("```{language}\n")).unwrap();
    let program = program.split_once("```").unwrap().0;
    let script = folder.path().join(file);
    let program = program.replace("http://127.0.0.1:8484/", &stand.url("/"));
    std::fs::write(&script, program).unwrap();
    let start = || {
        let mut command = installed.command(&script, folder.path());
        let base = format!("{}/v1", upstream.base_url());
        command
            .env("OPENAI_API_KEY", "sk-client")
            .env("OPENAI_BASE_URL", base)
            .process_group(0);
        command
    };
    // Killed twice, wherever it is then: between two requests, or while one runs.
    for requests in [9, 41] {
        let mut running = start().spawn().unwrap();
        while count.load(Ordering::Relaxed) < requests {
            assert!(running.try_wait().unwrap().is_none(), "it ended before");
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        // With all that it started: `node` may be a program that starts the real one.
        let group = format!("-{}", running.id().unwrap());
        let killed = std::process::Command::new("kill")
            .args(["-9", "--", &group])
            .status();
        assert!(killed.unwrap().success());
        running.wait().await.unwrap();
    }
    // And once more when all is done.
    let again = async {
        let first = start().output().await.unwrap();
        (first, start().output().await.unwrap())
    };
    let (output, again) = again.await;
    assert!(again.status.success(), "{again:?}");
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(
        said.contains("on a branch: Answer") && said.contains("found: "),
        "{said}"
    );
    let chat = "/api/v1/conversations/trip-7";
    let messages = stand
        .find(&format!("{chat}/messages"), &[("branch", "main")])
        .await
        .ok();
    let spoken = messages["messages"].as_array().unwrap().iter();
    let spoken: Vec<&Value> = spoken
        .filter(|message| message["role"] == "user")
        .map(|message| &message["id"])
        .collect();
    let expected: Vec<String> = (0..TURNS).map(|turn| format!("turn-{turn}")).collect();
    assert_eq!(spoken, expected.iter().collect::<Vec<_>>());
    let compactions = stand.get(&format!("{chat}/compactions")).await.ok();
    assert!(
        compactions.to_string().contains("\"first\""),
        "{compactions}"
    );
}

#[tokio::test]
async fn the_loop_in_python_goes_on_after_kills() {
    check("python", "agent.py").await;
}

#[tokio::test]
async fn the_loop_in_typescript_goes_on_after_kills() {
    check("ts", "agent.mts").await;
}
