//! What is answered, whatever the format.

use serde_json::Value;

use crate::scripted::order::ScriptDirectives;
use crate::scripted::prompt::{Prompt, Speaker};

/// Creation time in every answer that has one, in seconds since the Unix epoch.
pub(crate) const CREATED: u64 = 1_760_000_000;

/// Scripted reply, independent of the provider's format.
#[derive(Debug)]
pub(crate) struct ScriptedReply {
    pub(crate) model: String,
    /// Id derived from the request; formats put their prefix before it.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<ScriptedToolCall>,
    pub(crate) usage: ScriptedUsage,
}

#[derive(Debug)]
pub(crate) struct ScriptedToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Arguments of the call, as JSON text.
    pub(crate) arguments: String,
}

impl ScriptedToolCall {
    pub(crate) fn parse_arguments(&self) -> Value {
        let parsed = serde_json::from_str(&self.arguments);
        parsed.unwrap_or_else(|error| panic!("arguments of `{}`: {error}", self.name))
    }
}

/// Numbers of tokens in the request and the reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptedUsage {
    /// Tokens of the prompt, those from the cache included.
    pub(crate) input: usize,
    pub(crate) cached: usize,
    pub(crate) output: usize,
}

impl ScriptedUsage {
    pub(crate) fn total(self) -> usize {
        self.input + self.output
    }
}

impl ScriptedReply {
    pub(crate) fn for_prompt(
        prompt: &Prompt,
        order: &ScriptDirectives,
        key: u64,
        cached: usize,
    ) -> Self {
        let id = format!("{key:016x}");
        // Ids follow from the request, so that two runs give the same history.
        let call = |(number, (name, arguments)): (usize, &(String, String))| ScriptedToolCall {
            id: format!("{id}_{number}"),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        let calls: Vec<ScriptedToolCall> = order.calls.iter().enumerate().map(call).collect();
        let text = match (order.words, prompt.last_speaker) {
            (Some(words), _) => (0..words).map(|number| format!("word{number} ")).collect(),
            (None, _) if !calls.is_empty() => "I look that up.".to_owned(),
            (None, Speaker::Tool) => format!("The tool says: {}", prompt.last_text),
            // Letters of two, three and four bytes: chunks may cut them.
            (None, Speaker::Person) => format!("Answer {}: naïve, 東京, 🦀.", prompt.turns),
        };
        let arguments: usize = calls.iter().map(|call| call.arguments.len()).sum();
        let usage = ScriptedUsage {
            input: prompt.token_count(),
            cached,
            output: (text.len() + arguments).div_ceil(4),
        };
        Self {
            model: prompt
                .model
                .clone()
                .unwrap_or_else(|| "scripted".to_owned()),
            id,
            text,
            calls,
            usage,
        }
    }

    /// The text as a model says it, some at a time.
    pub(crate) fn text_deltas(&self) -> impl Iterator<Item = &str> {
        self.text.split_inclusive(' ')
    }
}
