//! A research team: a lead gives three researchers a question each, they work side by side and send what they find over a channel,
//! and the lead's last answer is a value of a type.
//!
//! Run it with `cargo run -p contexture --example research_team`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use contexture::models::{ModelResponse, ScriptedModel, text_response};
use contexture::runs::{Channel, SubAgent, ToolFailure, WaitTimeout};
use contexture::tools::Policy;
use contexture::{
    Agent, Engine, Format, Run, RunBudget, Target, ToolBox, ToolCall, TypedTool, hint, role, user,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a researcher tells everybody as soon as it is found.
#[derive(Deserialize, JsonSchema)]
struct Finding {
    /// One sentence, with its source.
    sentence: String,
}

/// What the lead ends with.
#[derive(Deserialize, JsonSchema)]
struct Recommendation {
    /// The river to swim in.
    river: String,
    /// From 0 to 1.
    confidence: f64,
}

/// Over which the team's findings come, also to the program.
fn findings() -> Channel<String> {
    Channel::queue("findings")
}

async fn share(finding: Finding, call: ToolCall) -> Result<&'static str, ToolFailure> {
    let run = call.run.as_ref();
    let run = run.ok_or_else(|| ToolFailure::from_message("it works in no run"))?;
    let (channel, line) = (findings(), format!("{}: {}", run.agent(), finding.sentence));
    let (channels, wait) = (run.channels(), WaitTimeout::default());
    let sent = channels.send(&channel, line, wait, run.abort());
    sent.await.map_err(ToolFailure::from_message)?;
    Ok("everybody knows")
}

/// A researcher of one river. The models read from scripts; `contexture::models_http::HttpModel` asks a provider.
fn researcher(river: &str) -> Result<SubAgent, Box<dyn Error>> {
    let mut tools = ToolBox::new(Policy::deny_all().allow("share"));
    tools.add_typed(TypedTool::new("share", "Shares a finding.", share).parallel())?;
    let finding = format!(r#"{{"sentence":"The {river} is warm enough (its gauge)."}}"#);
    let answers = [
        calling(&[("found", "share", &finding)]),
        text_response(Format::OpenAiChat, &format!("The {river} is warm.")),
    ];
    let model = ScriptedModel::new(answers.map(|answer| Ok(ModelResponse::new(answer))));
    let agent = Agent::new(river, Arc::new(model), Target::openai_chat("gpt-4o"))
        .with_instructions([
            role("You find out about one river."),
            hint("Share each finding."),
        ])?
        .with_tools(tools)?
        // A researcher that does not come to an end is stopped after ten answers.
        .with_max_answers(10);
    Ok(SubAgent::new(agent, "Finds out about a river."))
}

/// The lead. Its first answer asks all three at once; its second is not of the type, so it is asked again.
fn lead() -> Result<Agent, Box<dyn Error>> {
    let answers = [
        calling(&[
            ("a", "ask_niger", r#"{"task":"Is it warm?"}"#),
            ("b", "ask_aare", r#"{"task":"Is it warm?"}"#),
            ("c", "ask_limmat", r#"{"task":"Is it warm?"}"#),
        ]),
        text_response(Format::OpenAiChat, "All of them are fine."),
        text_response(Format::OpenAiChat, r#"{"river":"Aare","confidence":0.8}"#),
    ];
    let model = ScriptedModel::new(answers.map(|answer| Ok(ModelResponse::new(answer))));
    let budget = RunBudget {
        tokens: Some(100_000),
        ..RunBudget::default()
    };
    let lead = Agent::new("lead", Arc::new(model), Target::openai_chat("gpt-4o"))
        .with_instructions([role("You lead a team that looks for a river to swim in.")])?
        .with_output::<Recommendation>()
        // For the whole team: those who work side by side share it.
        .with_budget(budget)
        .with_sub_agent("ask_niger", researcher("Niger")?)?
        .with_sub_agent("ask_aare", researcher("Aare")?)?
        .with_sub_agent("ask_limmat", researcher("Limmat")?)?;
    Ok(lead)
}

/// An answer that calls tools: ids, names, arguments.
fn calling(calls: &[(&str, &str, &str)]) -> String {
    let calls = calls.iter().map(|(id, tool, arguments)| {
        let arguments = arguments.replace('"', "\\\"");
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":"{arguments}"}}}}"#)
    });
    let calls: Vec<String> = calls.collect();
    format!(
        r#"{{"id":"1","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{{"index":0,
        "message":{{"role":"assistant","content":null,"tool_calls":[{}]}},"finish_reason":"tool_calls"}}]}}"#,
        calls.join(",")
    )
}

/// Runs the example.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let chat = Engine::in_memory().conversation("rivers").open().await?;
    chat.save([user("Where shall we swim?")]).await?;
    let mut run = Run::begin(&chat, &lead()?, []).await?;
    let (handle, found) = (run.handle(), findings());
    // The program hears each finding while the team still works.
    let listening = async {
        let mut heard = Vec::new();
        while heard.len() < 3 {
            let channels = handle.channels();
            let received = channels.recv(&found, WaitTimeout::default(), handle.abort_signal());
            heard.push(received.await?);
        }
        Ok::<_, Box<dyn Error>>(heard)
    };
    let (turn, heard) = tokio::join!(run.drive(), listening);
    let turn = turn?;
    for line in heard? {
        println!("{line}");
    }
    let recommendation: Recommendation = turn.output()?;
    println!(
        "{} ({:.0} %)",
        recommendation.river,
        recommendation.confidence * 100.0
    );
    assert_eq!(recommendation.river, "Aare");
    // Two answers of each researcher, three of the lead.
    assert_eq!(turn.usage.responses, 9);
    Ok(())
}
