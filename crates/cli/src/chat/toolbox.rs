//! The one tool that every talk has: reading what the conversation keeps and no longer shows.

use contexture::Conversation;
use contexture::compile::read_tool;
use contexture::layers::Rerun;
use contexture::runs::{ToolBox, ToolCall, ToolConcurrency, ToolFailure, ToolOptions, ToolOutput};
use contexture::tools::{Policy, Tool};

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The tools of a talk, under a policy that counts for those of layers too.
///
/// # Errors
/// None that should be.
pub(crate) fn build_toolbox(chat: &Conversation, policy: Policy) -> Outcome<ToolBox> {
    let mut tools = ToolBox::new(policy);
    let options = ToolOptions {
        // It only reads: after a crash it may simply be called again, and several may run at once.
        rerun: Rerun::Repeat,
        concurrency: ToolConcurrency::Parallel,
        ..ToolOptions::default()
    };
    let chat = chat.clone();
    let read = move |call: ToolCall| {
        let chat = chat.clone();
        async move {
            let answer = chat.read_context(call.arguments.get()).await;
            let answer = answer.map_err(ToolFailure::from_message)?;
            match answer.is_error {
                // The tool answers errors as text; here they have to be marked as failures.
                true => Err(ToolFailure::from_message(answer.text)),
                false => Ok(ToolOutput::from(answer.text)),
            }
        }
    };
    let added = tools.add_tool_with(Tool::new(read_tool()), options, read);
    added.map_err(|error| Failure::new(Exit::Fault, "tools", error.to_string()))?;
    Ok(tools)
}
