//! Our tools: what models are told of them, and what they give.

use contexture::compile::reading::ReadReply;
use contexture::compile::{READ_TOOL, read_tool};
use contexture::ir::{FunctionCall, FunctionCallOutput, Item, Output, Raw, Status, ToolDefinition};
use contexture::{Conversation, EngineError, InterceptedCall};

/// A tool that the proxy answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerTool {
    /// Reads what the conversation keeps and the request does not show.
    ReadContext,
    /// A function of a layer of the conversation, by the name that models call it by. The layer offers it itself.
    Layer(String),
}

/// Those that a request offers.
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

    /// What a call gives. A failure is told to the model, who can go on without.
    async fn call_tool(&self, chat: &Conversation, arguments: &str) -> ReadReply {
        match self {
            Self::Layer(name) => call_layer_function(chat, name, arguments).await,
            Self::ReadContext => {
                let answer = chat.read_context(arguments).await;
                answer.unwrap_or_else(|error| {
                    tracing::warn!(%error, "what a model wanted to read could not be read");
                    ReadReply::from_error("it cannot be read now")
                })
            }
        }
    }
}

impl ServerTools {
    /// Those that layers of the conversation offer.
    pub(crate) fn from_layers(chat: &Conversation) -> Self {
        let tools = chat.layers().tool_definitions();
        let tools = tools
            .iter()
            .map(|tool| ServerTool::Layer(tool.name().to_owned()));
        Self(tools.collect())
    }

    /// The same with one more.
    pub(crate) fn with_tool(mut self, tool: ServerTool) -> Self {
        self.0.push(tool);
        self
    }

    /// The same without one.
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

    /// The tool of a name.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&ServerTool> {
        self.0.iter().find(|tool| tool.name() == name)
    }

    /// The calls of ours among items, with what they give. One that did not come whole gives nothing.
    pub(crate) async fn answer_calls(
        &self,
        chat: &Conversation,
        items: &[Item],
    ) -> Vec<InterceptedCall> {
        let mut own = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let Item::FunctionCall(call) = item else {
                continue;
            };
            let Some(tool) = self.find_by_name(&call.name) else {
                continue;
            };
            let is_cut = call.status.is_some_and(Status::is_incomplete);
            let output = match is_cut {
                true => None,
                false => Some(to_call_output(
                    call,
                    tool.call_tool(chat, &call.arguments).await,
                )),
            };
            own.push(InterceptedCall { place, output });
        }
        own
    }
}

/// What the function of a layer gives.
async fn call_layer_function(chat: &Conversation, name: &str, arguments: &str) -> ReadReply {
    let arguments = match arguments.trim() {
        "" => "{}",
        given => given,
    };
    let Ok(arguments) = Raw::parse(arguments) else {
        return ReadReply::from_error("the arguments are no JSON");
    };
    let called = match has_path_state(chat, name) {
        true => call_without_saving(chat, name, &arguments).await,
        false => chat.call_function(name, &arguments).await,
    };
    match called {
        Ok(given) => ReadReply {
            text: given.as_string().unwrap_or_else(|| given.get().to_owned()),
            is_error: false,
        },
        Err(EngineError::Function(error)) => ReadReply::from_error(error),
        Err(error) => {
            tracing::warn!(%error, name, "what a model wanted done could not be done");
            ReadReply::from_error("it cannot be done now")
        }
    }
}

/// Calls a function and lets go what it changed of states of the path: a node of its own would stand where no client
/// sends one. What skills keep there, which of them were read, is of no use here.
async fn call_without_saving(
    chat: &Conversation,
    name: &str,
    arguments: &Raw,
) -> Result<Raw, EngineError> {
    let mut session = chat.layer_session(None).await?;
    Ok(session.call_function(name, arguments).await?)
}

fn has_path_state(chat: &Conversation, name: &str) -> bool {
    let layers = chat.layers();
    let mut functions = layers.functions();
    let layer = functions.find(|(_, function)| function.tool == name);
    let mut specs = layers.specs();
    layer.is_some_and(|(id, _)| specs.any(|spec| spec.id == *id && spec.scope.is_on_tree()))
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
