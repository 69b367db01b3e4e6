//! A request to a model, or its response, in no provider's format.
//!
//! `lift` reads a provider's JSON into a transcript, `lower` writes one. What only one format can say
//! stays verbatim in the nearest `extra` under that format's name, see [`Extra`].

use serde_json::Number;

use serde::{Deserialize, Serialize};

use crate::item::{Item, Message};
use crate::raw::{Extra, Raw};
use crate::tool::{ToolChoice, ToolDefinition};

/// A request or a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The model asked, or the one that answered.
    pub model: Option<String>,
    /// What stands before the history: system and developer messages that lead. They are not items
    /// of the history, so a date line that changes does not fork a conversation.
    pub instructions: Vec<Message>,
    /// The history, or the response's output.
    pub items: Vec<Item>,
    /// The tools offered.
    pub tools: Vec<ToolDefinition>,
    /// How to answer.
    pub options: RequestOptions,
    /// Set on a response.
    pub response: Option<ResponseInfo>,
    /// Top-level fields no typed field claimed.
    pub extra: Extra,
}

/// How a model should answer: typed where every format has a word for it. Absent means the
/// provider's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// The most tokens to write.
    pub max_output_tokens: Option<u64>,
    /// Sampling temperature, as the provider takes it.
    pub temperature: Option<Number>,
    /// Nucleus sampling: the share of probability to draw from.
    pub top_p: Option<Number>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Which tools may or must be used.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls may come at once.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    pub response_format: Option<ResponseFormat>,
    /// How much to think.
    pub reasoning: Option<ReasoningOptions>,
    /// Whether the answer is streamed.
    pub stream: Option<bool>,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseFormat {
    /// Text in any form.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that follows a schema.
    JsonSchema {
        /// A name for the schema, where the format wants one.
        name: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// The schema, verbatim.
        schema: Raw,
        /// Whether it must be followed strictly.
        strict: Option<bool>,
    },
}

/// How much to think.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasoningOptions {
    /// `none`, `minimal`, `low`, `medium`, `high`, or a newer word.
    pub effort: Option<String>,
    /// The most tokens to think with.
    pub budget_tokens: Option<u64>,
    /// Whether to show the thoughts or a summary of them: `auto`, `concise`, `detailed`, ….
    pub summary: Option<String>,
}

/// What a response reports about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseInfo {
    /// The provider's id.
    pub id: Option<String>,
    /// Why it ended; absent while it has not.
    pub finish: Option<FinishReason>,
    /// What it used.
    pub usage: Option<Usage>,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model wants tools run.
    ToolCalls,
    /// The output limit was reached.
    Length,
    /// A filter or the model refused.
    ContentFilter,
    /// Another reason, in the format's own word.
    Other(String),
}

impl FinishReason {
    /// The lower-case word, or the format's own.
    #[must_use]
    // The words of OpenAI's Chat Completions, which most hosts and the telemetry conventions use.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other(word) => word,
        }
    }
}

/// Tokens of one model call. `None` means the provider said nothing, which is not zero.
///
/// `input_tokens` includes what was read from and written to a cache, in every format: adapters of
/// formats that count them apart add them up, so that figures can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Everything the model read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Everything the model wrote, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input and output, as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Of the input: read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input: written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Of the output: spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The provider's own usage object, verbatim under its format's name.
    #[serde(skip)]
    pub extra: Extra,
}
