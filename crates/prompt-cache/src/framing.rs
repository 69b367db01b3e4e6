//! The tokens that a provider's format adds around messages, calls and tools.
//!
//! The outline of a request needs them to weigh its blocks, and the compiler to weigh what it builds, so that both come to
//! the same figures.
//!
//! Not here: counting texts (`contexture-tokens`).

use contexture_ir::Item;
use contexture_tokens::TokenBounds;
use contexture_wire::{Format, Overhead, TokenPair};

/// What a format adds around the text it is given: [`contexture_wire::Overhead`] as bounds, which can be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Once a request.
    pub request: TokenBounds,
    /// For the system prompt, if there is one.
    pub system: TokenBounds,
    /// For each element of the array of messages.
    pub message: TokenBounds,
    /// For each call of a function, beside its name and arguments.
    pub call: TokenBounds,
    /// For each output of a function, beside its text.
    pub output: TokenBounds,
    /// For each tool, beside the JSON of its definition.
    pub tool: TokenBounds,
    /// Once, if there are tools and the model's prompt for them is not known.
    pub tools: TokenBounds,
    /// Per cent of a tool's JSON that it takes at least: providers write tools more briefly.
    pub tool_text: u64,
    /// Once, if the model is asked to think.
    pub reasoning: TokenBounds,
    /// Once, if the answer has a schema, beside its JSON.
    pub schema: TokenBounds,
}

impl Framing {
    /// The overhead of one item inside its message; nothing for texts, which the message covers.
    #[must_use]
    pub const fn item_overhead(&self, item: &Item) -> TokenBounds {
        match item {
            Item::FunctionCall(_) => self.call,
            Item::FunctionCallOutput(_) => self.output,
            _ => TokenBounds::ZERO,
        }
    }

    /// The bounds of a format.
    #[must_use]
    pub fn for_format(format: Format) -> Self {
        Self::from_overhead(format.spec().overhead())
    }

    /// The same figures as bounds that can be counted with.
    #[must_use]
    pub fn from_overhead(overhead: &Overhead) -> Self {
        let bounds = |(low, high): TokenPair| TokenBounds::between(low, high);
        Self {
            request: bounds(overhead.request),
            system: bounds(overhead.system),
            message: bounds(overhead.message),
            call: bounds(overhead.call),
            output: bounds(overhead.output),
            tool: bounds(overhead.tool),
            tools: bounds(overhead.tools),
            tool_text: overhead.tool_text,
            reasoning: bounds(overhead.reasoning),
            schema: bounds(overhead.schema),
        }
    }
}
