//! Our tools: what models are told of them, and what they give.

use contexture::compile::reading::Answer;
use contexture::compile::{READ_TOOL, read_tool};
use contexture::ir::{FunctionCall, FunctionCallOutput, Item, Output, Status, ToolDefinition};
use contexture::{Conversation, OwnCall};

/// A tool that the proxy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnTool {
    /// Reads what the conversation keeps and the request does not show.
    ReadContext,
}

/// Those that a request offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTools(Vec<OwnTool>);

impl OwnTool {
    /// The name that models call it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReadContext => READ_TOOL,
        }
    }

    fn definition(self) -> ToolDefinition {
        match self {
            Self::ReadContext => read_tool(),
        }
    }

    /// What a call gives. A failure is told to the model, who can go on without.
    async fn call(self, chat: &Conversation, arguments: &str) -> Answer {
        match self {
            Self::ReadContext => {
                let answer = chat.read_context(arguments).await;
                answer.unwrap_or_else(|error| {
                    tracing::warn!(%error, "what a model wanted to read could not be read");
                    Answer::failed("it cannot be read now")
                })
            }
        }
    }
}

impl OwnTools {
    pub(crate) fn new(tools: impl IntoIterator<Item = OwnTool>) -> Self {
        Self(tools.into_iter().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn definitions(&self) -> impl Iterator<Item = ToolDefinition> {
        self.0.iter().map(|tool| tool.definition())
    }

    /// The tool of a name.
    pub(crate) fn named(&self, name: &str) -> Option<OwnTool> {
        self.0.iter().copied().find(|tool| tool.name() == name)
    }

    /// The calls of ours among items, with what they give. One that did not come whole gives nothing.
    pub(crate) async fn answer(&self, chat: &Conversation, items: &[Item]) -> Vec<OwnCall> {
        let mut own = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let Item::FunctionCall(call) = item else {
                continue;
            };
            let Some(tool) = self.named(&call.name) else {
                continue;
            };
            let is_cut = matches!(call.status, Some(Status::Incomplete | Status::InProgress));
            let output = match is_cut {
                true => None,
                false => Some(output(call, tool.call(chat, &call.arguments).await)),
            };
            own.push(OwnCall { place, output });
        }
        own
    }
}

fn output(call: &FunctionCall, answer: Answer) -> FunctionCallOutput {
    FunctionCallOutput {
        id: None,
        call_id: call.call_id.clone(),
        output: Output::Text(answer.text),
        is_error: answer.is_error.then_some(true),
        status: None,
        extra: Default::default(),
    }
}
