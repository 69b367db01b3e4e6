//! What is answered, whatever the format.

use serde_json::Value;

use crate::scripted::order::Order;
use crate::scripted::prompt::{Prompt, Speaker};

/// When everything was made that has a time: seconds since 1970.
pub(crate) const CREATED: u64 = 1_760_000_000;

/// What is answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) model: String,
    /// Follows from the request; formats put their prefix before it.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Usage,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON as text.
    pub(crate) arguments: String,
}

impl Call {
    pub(crate) fn input(&self) -> Value {
        let parsed = serde_json::from_str(&self.arguments);
        parsed.unwrap_or_else(|error| panic!("arguments of `{}`: {error}", self.name))
    }
}

/// Tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Of the prompt, those from the cache included.
    pub(crate) input: usize,
    pub(crate) cached: usize,
    pub(crate) output: usize,
}

impl Usage {
    pub(crate) fn total(self) -> usize {
        self.input + self.output
    }
}

impl Reply {
    pub(crate) fn to(prompt: &Prompt, order: &Order, key: u64, cached: usize) -> Self {
        let id = format!("{key:016x}");
        let call = |(number, (name, arguments)): (usize, &(String, String))| Call {
            id: format!("{id}_{number}"),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        let calls: Vec<Call> = order.calls.iter().enumerate().map(call).collect();
        let text = match (order.words, prompt.by) {
            (Some(words), _) => (0..words).map(|number| format!("word{number} ")).collect(),
            (None, _) if !calls.is_empty() => "I look that up.".to_owned(),
            (None, Speaker::Tool) => format!("The tool says: {}", prompt.said),
            // Letters of two, three and four bytes: chunks may cut them.
            (None, Speaker::Person) => format!("Answer {}: naïve, 東京, 🦀.", prompt.turns),
        };
        let arguments: usize = calls.iter().map(|call| call.arguments.len()).sum();
        let usage = Usage {
            input: prompt.tokens(),
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
    pub(crate) fn deltas(&self) -> impl Iterator<Item = &str> {
        self.text.split_inclusive(' ')
    }
}
