//! An agent with a tool that moves money: a person has to allow each call.
//!
//! Run it with `cargo run -p contexture --example agent_with_approval`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use contexture::ir::Raw;
use contexture::models::{ModelResponse, ScriptedModel, text_response};
use contexture::runs::{ApprovalDecision, TurnEnd, store_decision};
use contexture::tools::{Policy, Tool};
use contexture::{
    Agent, Engine, Format, Run, Target, ToolBox, ToolCall, ToolOutput, run_turn_with_text,
};

/// Runs the example.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let schema =
        r#"{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}"#;
    let refund = Tool::function("refund", "Refunds an order.", Raw::parse(schema)?);
    let policy = Policy::default().ask("refund");
    let mut tools = ToolBox::new(policy);
    tools.add_tool(refund, |call: ToolCall| async move {
        Ok(ToolOutput::from(format!(
            "refunded {}",
            call.arguments.get()
        )))
    })?;

    // `contexture::models_http::HttpModel` asks a provider (feature `http-models`). This model reads from a script.
    let call = r#"{"id":"1","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{"index":0,
        "message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
        "function":{"name":"refund","arguments":"{\"order\":\"A-7\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    let answer = text_response(Format::OpenAiChat, "Your order A-7 is refunded.");
    let script = [call.to_owned(), answer].map(|body| Ok(ModelResponse::new(body)));
    let model = Arc::new(ScriptedModel::new(script));
    let agent = Agent::new("support", model, Target::openai_chat("gpt-4o")).with_tools(tools)?;

    let chat = Engine::in_memory()
        .conversation("support-42")
        .open()
        .await?;
    let turn = run_turn_with_text(&chat, &agent, "Please refund order A-7.").await?;

    // The run waits, over a restart if need be, until somebody decides.
    let TurnEnd::Waiting { calls } = &turn.end else {
        return Err("the call was not left to a person".into());
    };
    for call in calls {
        println!("allowed by a person: {call}");
        store_decision(&chat, turn.run, *call, ApprovalDecision::Allow).await?;
    }
    let turn = Run::resume(&chat, turn.run, &agent).await?.drive().await?;
    println!("{}", turn.text);
    assert_eq!(turn.text, "Your order A-7 is refunded.");
    Ok(())
}
