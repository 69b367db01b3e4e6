//! Runs: listed, looked at, decided.

use std::sync::Arc;

use contexture::ir::Raw;
use contexture::models::{ModelResponse, ScriptedModel};
use contexture::runs::{Run, ToolBox, ToolCall, ToolOutput, TurnEnd};
use contexture::tools::{Policy, Tool};
use contexture::{Agent, Target, Turn, run_turn_with_text};
use serde_json::json;

use crate::messages::talk;
use crate::test_support::Stand;

const CALLING: &str = r#"{"id":"r1","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{"index":0,"finish_reason":"tool_calls",
  "message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"send","arguments":"{\"to\":\"Ada\"}"}}]}}],
  "usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#;
const DONE: &str = r#"{"id":"r2","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
  "message":{"role":"assistant","content":"Sent."}}],"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22}}"#;

/// A run of a conversation that waits for a decision, and its agent.
pub(crate) async fn waiting(stand: &Stand, conversation: &str) -> (Agent, Turn) {
    let model = Arc::new(ScriptedModel::new(
        [CALLING, DONE].map(|body| Ok(ModelResponse::new(body))),
    ));
    let mut tools = ToolBox::new(Policy::default().ask("send"));
    let tool = Tool::function("send", "Sends a letter", Raw::parse("{}").unwrap());
    tools
        .add_tool(tool, |_: ToolCall| async { Ok(ToolOutput::from("done")) })
        .unwrap();
    let agent = Agent::new("porter", model, Target::openai_chat("gpt-4o"))
        .with_tools(tools)
        .unwrap();
    let chat = stand
        .engine
        .conversation(conversation)
        .open_existing()
        .await;
    let turn = run_turn_with_text(&chat.unwrap(), &agent, "Send it.")
        .await
        .unwrap();
    assert!(matches!(turn.end, TurnEnd::Waiting { .. }), "{turn:?}");
    (agent, turn)
}

#[tokio::test]
async fn what_waits_is_decided_over_http_and_goes_on() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let (agent, turn) = waiting(&stand, "a").await;

    let listed = stand.get("/api/v1/runs").await.ok();
    let run = &listed["runs"][0];
    assert_eq!(
        (&run["status"], &run["agent"], &run["conversation"]),
        (&json!("waiting"), &json!("porter"), &json!("a"))
    );
    assert_eq!(
        (&run["waiting"][0]["tool"], &run["waiting"][0]["arguments"]),
        (&json!("send"), &json!({"to": "Ada"}))
    );
    let at = format!("{path}/runs/{}", run["run"].as_str().unwrap());
    assert_eq!(stand.get(&at).await.ok(), *run);
    assert_eq!(stand.get("/api/v1/runs?conversation=a").await.ok(), listed);
    let decide = async |call: &str| {
        stand
            .post(
                &format!("{at}/decisions"),
                &json!({"call": call, "decision": "allow"}),
            )
            .await
    };
    decide(&"0".repeat(32)).await.refused(409, "not_waiting");
    assert_eq!(
        decide(run["waiting"][0]["call"].as_str().unwrap())
            .await
            .status,
        204
    );
    // The first decision holds, and the list says whose it is.
    let call = run["waiting"][0]["call"].as_str().unwrap();
    let denied = json!({"call": call, "decision": "deny", "by": "bob"});
    let refused = stand.post(&format!("{at}/decisions"), &denied).await;
    refused.refused(409, "already_decided");
    let shown = stand.get(&at).await.ok();
    let decided = &shown["waiting"][0]["decided"];
    assert_eq!(
        (&decided["what"], &decided["by"]),
        (&json!("allow"), &json!(null))
    );
    let chat = stand
        .engine
        .conversation("a")
        .open_existing()
        .await
        .unwrap();
    let mut run = Run::resume(&chat, turn.run, &agent).await.unwrap();
    assert_eq!(run.drive().await.unwrap().text, "Sent.");
    let ended = stand.get(&at).await.ok();
    assert_eq!(
        (&ended["status"], &ended["waiting"]),
        (&json!("completed"), &json!([]))
    );
    stand
        .get(&format!("{path}/runs/none"))
        .await
        .refused(404, "not_found");
}
