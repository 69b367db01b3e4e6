//! The server tools: their definitions, and what their calls return.

use contexture::Conversation;
use contexture::compile::reading::ReadReply;
use contexture::compile::{READ_TOOL, read_tool};
use contexture::engine::InterceptedCall;
use contexture::ir::{FunctionCall, FunctionCallOutput, Item, Output, Status, ToolDefinition};
use contexture_api::operations::{PathState, answer_own_call};

/// A tool that the proxy answers itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerTool {
    /// Reads content of the conversation that the request omits.
    ReadContext,
    /// A function of a layer of the conversation, by the name that models call it by. The layer offers it itself.
    Layer(String),
}

/// The server tools that a request offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerTools(Vec<ServerTool>);

impl ServerTool {
    /// The name that models call it by.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::ReadContext => READ_TOOL,
            Self::Layer(name) => name,
        }
    }

    fn definition(&self) -> Option<ToolDefinition> {
        match self {
            Self::ReadContext => Some(read_tool()),
            Self::Layer(_) => None,
        }
    }

    /// Answers a call. A failure is told to the model, which can go on without.
    async fn call_tool(&self, chat: &Conversation, arguments: &str) -> ReadReply {
        answer_own_call(chat, self.name(), arguments, PathState::Discarded).await
    }
}

impl ServerTools {
    /// Returns the tools that layers of the conversation offer.
    pub(crate) fn from_layers(chat: &Conversation) -> Self {
        let tools = chat.layers().tool_definitions();
        let tools = tools
            .iter()
            .map(|tool| ServerTool::Layer(tool.name().to_owned()));
        Self(tools.collect())
    }

    /// Adds a tool.
    pub(crate) fn with_tool(mut self, tool: ServerTool) -> Self {
        self.0.push(tool);
        self
    }

    /// Removes a tool.
    pub(crate) fn without_tool(mut self, tool: &ServerTool) -> Self {
        self.0.retain(|own| own != tool);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that no layer offers.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = ToolDefinition> {
        self.0.iter().filter_map(ServerTool::definition)
    }

    /// Returns the tool of a name.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&ServerTool> {
        self.0.iter().find(|tool| tool.name() == name)
    }

    /// Answers the calls of server tools among items. A call that broke off has no output.
    pub(crate) async fn answer_calls(
        &self,
        chat: &Conversation,
        items: &[Item],
    ) -> Vec<InterceptedCall> {
        let mut calls = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let Item::FunctionCall(call) = item else {
                continue;
            };
            let Some(tool) = self.find_by_name(&call.name) else {
                continue;
            };
            // Its arguments may be incomplete and valid JSON all the same.
            let is_cut = call.status.is_some_and(Status::is_incomplete);
            let output = match is_cut {
                true => None,
                false => Some(to_call_output(
                    call,
                    tool.call_tool(chat, &call.arguments).await,
                )),
            };
            calls.push(InterceptedCall {
                position: place,
                output,
            });
        }
        calls
    }
}

fn to_call_output(call: &FunctionCall, answer: ReadReply) -> FunctionCallOutput {
    FunctionCallOutput {
        id: None,
        call_id: call.call_id.clone(),
        output: Output::Text(answer.text),
        is_error: answer.is_error.then_some(true),
        status: None,
        extra: Default::default(),
    }
}
