//! Runs: listed, looked at, decided.

use std::sync::Arc;

use contexture::ir::Raw;
use contexture::models::{ModelResponse, ScriptedModel};
use contexture::runs::{Run, ToolBox, ToolCall, ToolOutput, TurnEnd, recover_runs};
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
    // What it did: the model was asked and answered, and its call waits.
    let timeline = async || {
        let shown = stand.get(&format!("{at}/timeline")).await.ok();
        let spans = shown["spans"].as_array().unwrap().iter();
        let spans = spans.map(|span| {
            let open = if span["ended"].is_null() { " …" } else { "" };
            format!(
                "{} {}{open}",
                span["what"].as_str().unwrap(),
                span["tool"].as_str().unwrap_or("-")
            )
        });
        spans.collect::<Vec<_>>()
    };
    assert_eq!(timeline().await, ["run - …", "model -", "approval send …"]);
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
    assert_eq!(
        timeline().await,
        ["run -", "model -", "approval send", "tool send", "model -"]
    );
    stand
        .get(&format!("{path}/runs/none"))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn a_run_that_waits_is_cancelled_over_http() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let (agent, turn) = waiting(&stand, "a").await;
    let at = format!("{path}/runs/{}", turn.run);
    let TurnEnd::Waiting { calls } = &turn.end else {
        panic!("{:?}", turn.end);
    };
    let reason = json!({"reason": "the user has left"});
    let cancelled = stand.post(&format!("{at}/cancel"), &reason).await.ok();
    assert_eq!(
        (
            &cancelled["status"],
            &cancelled["why"],
            &cancelled["waiting"]
        ),
        (&json!("aborted"), &json!("the user has left"), &json!([]))
    );
    assert_eq!(stand.get(&at).await.ok(), cancelled);
    // Once more changes nothing, and there is nothing left to decide.
    let again = stand.post(&format!("{at}/cancel"), &json!({})).await.ok();
    assert_eq!(again, cancelled);
    let allowed = json!({"call": calls[0].to_string(), "decision": "allow"});
    let refused = stand.post(&format!("{at}/decisions"), &allowed).await;
    refused.refused(409, "not_waiting");
    let chat = stand.engine.conversation("a").open_existing().await;
    assert!(Run::resume(&chat.unwrap(), turn.run, &agent).await.is_err());
    let unknown = format!("{path}/runs/none/cancel");
    let unknown = stand.post(&unknown, &json!({})).await;
    unknown.refused(404, "not_found");
}

/// A page without agents asks for a run, a worker that has the agent carries it out.
#[tokio::test]
async fn a_run_is_queued_over_http_and_taken_up_by_a_worker() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &[]).await;
    let asked = json!({"conversation": "a", "agent": "porter", "input": "Send it."});
    let queued = stand.post("/api/v1/runs", &asked).await;
    assert_eq!(queued.status, 201);
    let queued = queued.ok();
    assert_eq!(
        (&queued["status"], &queued["agent"], &queued["ended"]),
        (&json!("queued"), &json!("porter"), &json!(null))
    );
    let at = format!("{path}/runs/{}", queued["run"].as_str().unwrap());
    assert_eq!(stand.get(&at).await.ok(), queued);
    for (asked, code) in [
        (
            json!({"conversation": "a", "agent": "", "input": "x"}),
            "bad_body",
        ),
        (
            json!({"conversation": "a", "agent": "porter", "input": []}),
            "bad_body",
        ),
        (
            json!({"conversation": "a", "agent": "porter", "input": 5}),
            "bad_body",
        ),
        (
            json!({"conversation": "a", "agent": "porter", "input": [{"type": 5}]}),
            "bad_message",
        ),
    ] {
        let status = if code == "bad_message" { 422 } else { 400 };
        let refused = stand.post("/api/v1/runs", &asked).await;
        refused.refused(status, code);
    }
    let unknown = json!({"conversation": "nowhere", "agent": "porter", "input": "x"});
    let unknown = stand.post("/api/v1/runs", &unknown).await;
    unknown.refused(404, "not_found");

    let model = ScriptedModel::new([Ok(ModelResponse::new(DONE))]);
    let porter = Agent::new("porter", Arc::new(model), Target::openai_chat("gpt-4o"));
    let owner = stand
        .engine
        .conversation("a")
        .open_existing()
        .await
        .unwrap();
    let of = |name: &str| (name == "porter").then(|| porter.clone());
    let ended = recover_runs(&stand.engine, owner.owner(), of)
        .await
        .unwrap();
    assert_eq!(ended.len(), 1);
    let shown = stand.get(&at).await.ok();
    assert_eq!(
        (&shown["status"], &shown["result"]),
        (&json!("completed"), &json!("Sent."))
    );
    // Items say the same as a text.
    let items = json!([{"type": "message", "role": "user", "content": "Send it again."}]);
    let asked = json!({"conversation": "a", "agent": "porter", "input": items});
    let other = stand.post("/api/v1/runs", &asked).await.ok();
    let cancel = format!("{path}/runs/{}/cancel", other["run"].as_str().unwrap());
    let cancelled = stand.post(&cancel, &json!({})).await.ok();
    assert_eq!(cancelled["status"], json!("aborted"));
    // Filters and pages.
    let listed = stand
        .get("/api/v1/runs?status=completed&agent=porter&limit=1")
        .await
        .ok();
    assert_eq!(listed["runs"][0], shown);
    assert_eq!(listed["next"], json!(null));
    let none = stand.get("/api/v1/runs?status=queued").await.ok();
    assert_eq!(none["runs"], json!([]));
    let wrong = stand.get("/api/v1/runs?status=sleeping").await;
    wrong.refused(400, "bad_query");
}
