//! What a model is asked in a step: the agent's target with its sub-agents, its instructions, its tools and the history.
//!
//! Not here: asking (`model_step`).

use std::sync::Arc;

use contexture_compile::{Band, Content, Contribution, Target};
use contexture_engine::{
    CompileAttempt, CompileOptions, CompiledCall, RegistryTools, SettingsSource,
};
use contexture_ir::{Extra, FunctionTool, Raw, ToolDefinition};

use crate::agent::OutputType;
use crate::error::RunError;
use crate::execution::{LiveRun, RunSideUsage};
use crate::record::node_id;

/// The target of a step: the agent's, with sub-agents as tools.
pub(crate) fn step_target(run: &LiveRun) -> Target {
    let mut tools: Vec<ToolDefinition> = Vec::new();
    for (name, agent) in &run.agent.agents {
        tools.push(sub_agent_tool(name, &agent.description));
    }
    let mut target = run.agent.target.clone();
    // Sub-agents are not in the tool box, so they are added to the target's own tools.
    if !tools.is_empty() {
        target = target.add_tools(tools);
    }
    // A host of which nothing is known may cut what is too long without a word.
    if run.agent.model.refuses_overflow() {
        target = target.likely_where_refused();
    }
    target
}

/// Compiles the call, after compacting the history if that is due.
pub(crate) async fn compile_call(
    run: &LiveRun,
    target: &Target,
    attempt: CompileAttempt,
) -> Result<CompiledCall, RunError> {
    let contributions = agent_instructions(run);
    let options = CompileOptions {
        contributions: &contributions,
        layers: Some(&run.session),
        tools: Some(RegistryTools {
            registry: run.agent.tools.registry(),
            choice: &run.agent.tool_choice,
            loaded: &run.loaded,
        }),
        // An agent asks in its own way, whatever a request that the conversation was imported from asked.
        settings: SettingsSource::Target,
        attempt,
        ..CompileOptions::default()
    };
    let mut prepare = run.agent.prepare_options.clone();
    // The key derives from the step: a resumed run that compacts again finds the summary of the first attempt.
    let key = node_id(run.id, "compaction", &run.step.to_le_bytes());
    prepare.compact.side_usage = Some(Arc::<RunSideUsage>::clone(&run.side_usage));
    prepare.compact.key = Some(*key.as_bytes());
    let prepared = run.chat.prepare_with(target, &prepare, options);
    Ok(prepared.await?.call)
}

/// The agent's own instructions, with the type of its final answer. Before those of the conversation, which change more often:
/// what leads stays cached.
fn agent_instructions(run: &LiveRun) -> Vec<Contribution> {
    let mut fragments = run.agent.instructions.clone();
    fragments.extend(run.agent.output.as_ref().map(OutputType::instruction));
    if fragments.is_empty() {
        return Vec::new();
    }
    let content = Content::Fragments {
        fragments,
        renderer: run.chat.renderer(),
    };
    let instructions = Contribution::new("agent", Band::System, content);
    vec![Contribution {
        order: -1,
        ..instructions
    }]
}

/// Describes a sub-agent as a tool with one argument, its task.
fn sub_agent_tool(name: &str, description: &str) -> ToolDefinition {
    let schema = r#"{"type":"object","properties":{"task":{"type":"string","description":"What is to be done, with all that is needed to do it"}},"required":["task"],"additionalProperties":false}"#;
    ToolDefinition::Function(FunctionTool {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters: Raw::parse(schema).ok(),
        strict: None,
        extra: Extra::default(),
    })
}
