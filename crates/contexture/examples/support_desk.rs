//! A support desk of two agents: the desk gives a clerk its tasks, and a refund waits for a person, who decides in another process.
//!
//! Run it with `cargo run -p contexture --example support_desk`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use contexture::ir::Raw;
use contexture::models::{ModelResponse, ScriptedModel, text_response};
use contexture::runs::{
    ApprovalDecision, RunEvent, RunEventKind, SubAgent, ToolFailure, list_runs, recover_runs,
    store_decision, waiting_calls,
};
use contexture::tools::{Policy, Tool};
use contexture::{
    Agent, Format, Owner, Target, ToolBox, ToolCall, ToolOutput, hint, role, run_turn_with_text,
};

/// What the program gives its tools.
struct Shop {
    name: &'static str,
}

/// The tools of the desk: a refund, which a person has to allow.
fn desk_tools() -> Result<ToolBox, Box<dyn Error>> {
    let schema =
        r#"{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}"#;
    let refund = Tool::function("refund", "Refunds an order.", Raw::parse(schema)?);
    let mut tools = ToolBox::new(Policy::default().ask("refund"));
    tools.add_tool(refund, |call: ToolCall| async move {
        let run = call.run.as_ref();
        let shop = run.and_then(|run| run.value::<Shop>());
        let shop = shop.ok_or_else(|| ToolFailure::from_message("there is no shop"))?;
        Ok(ToolOutput::from(format!(
            "{} refunded {}",
            shop.name,
            call.arguments.get()
        )))
    })?;
    Ok(tools)
}

/// The desk with its clerk. The models read from scripts; `contexture::models_http::HttpModel` asks a provider.
fn desk() -> Result<Agent, Box<dyn Error>> {
    let target = || Target::openai_chat("gpt-4o");
    let clerk = ScriptedModel::with_texts(Format::OpenAiChat, ["A-7 came broken: refund it."]);
    let clerk = Agent::new("clerk", Arc::new(clerk), target())
        .with_instructions([role("You look up orders."), hint("One sentence.")])?;
    // It says what follows from what has been done, so another process goes on where this one stopped.
    let model = ScriptedModel::with_fn(|request| {
        let done = |call: &str| {
            request
                .payload
                .contains(&format!(r#""tool_call_id":"{call}""#))
        };
        Ok(match (done("ask"), done("pay")) {
            (false, _) => calling("ask", "ask_clerk", r#"{"task":"What about A-7?"}"#),
            (true, false) => calling("pay", "refund", r#"{"order":"A-7"}"#),
            (true, true) => {
                ModelResponse::new(text_response(Format::OpenAiChat, "A-7 is refunded."))
            }
        })
    });
    let clerk = SubAgent::new(clerk, "Looks up orders.");
    Ok(Agent::new("desk", Arc::new(model), target())
        .with_instructions([role("You are the support desk of a shop.")])?
        .with_tools(desk_tools()?)?
        .with_sub_agent("ask_clerk", clerk)?
        .with_value(Shop { name: "Aurora" })
        .with_observer(|event: &RunEvent| {
            if let RunEventKind::ToolStarted { call, .. } = &event.kind {
                println!("step {}: {}", event.step, call.name);
            }
        }))
}

/// An answer that calls a tool.
fn calling(id: &str, tool: &str, arguments: &str) -> ModelResponse {
    let arguments = arguments.replace('"', "\\\"");
    ModelResponse::new(format!(
        r#"{{"id":"1","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{{"index":0,
        "message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function",
        "function":{{"name":"{tool}","arguments":"{arguments}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
    ))
}

/// The first process: it answers until a person has to decide.
async fn answer(database: &Path) -> Result<(), Box<dyn Error>> {
    let engine = contexture::open(&database.to_string_lossy()).await?;
    let chat = engine.conversation("ticket-7").owner("ada").open().await?;
    let turn = run_turn_with_text(&chat, &desk()?, "My order A-7 is broken.").await?;
    println!("the run is {}", turn.end.as_str());
    Ok(())
}

/// Another process: a person decides, and the run goes on.
async fn decide(database: &Path) -> Result<(), Box<dyn Error>> {
    let engine = contexture::open(&database.to_string_lossy()).await?;
    let owner = Owner::new("ada")?;
    let chat = engine.conversation("ticket-7").owner("ada").open().await?;
    for entry in list_runs(&engine, &owner, None).await? {
        let Some(run) = entry.id().filter(|_| entry.parent.is_none()) else {
            continue;
        };
        for call in waiting_calls(&engine, &owner, &entry).await? {
            println!("allowed by bob: {} {}", call.tool, call.arguments);
            store_decision(&chat, run, call.node, ApprovalDecision::Allow.by("bob")).await?;
        }
    }
    let agent = desk()?;
    let agent_of = |name: &str| (name == agent.name()).then(|| agent.clone());
    for run in recover_runs(&engine, &owner, agent_of).await? {
        let turn = run.outcome?;
        println!("{}", turn.text);
        assert_eq!(turn.text, "A-7 is refunded.");
        // Three answers of the desk, one of the clerk.
        assert_eq!(turn.usage.responses, 4);
    }
    Ok(())
}

/// Runs the example.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("desk.db");
    answer(&database).await?;
    decide(&database).await
}
