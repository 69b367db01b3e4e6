//! The tokens that a provider's format adds around messages, calls and tools.
//!
//! The outline of a request needs them to weigh its blocks, and the compiler to weigh what it builds, so that both come to
//! the same figures.
//!
//! Not here: counting texts (`contexture-tokens`).

use contexture_ir::Item;
use contexture_tokens::TokenBounds;
use contexture_wire::Format;

/// What a format adds around the text it is given.
///
/// Little of it is documented: OpenAI's three tokens a message and three for the answer (OpenAI Cookbook, "How to count
/// tokens with tiktoken") for models before GPT-4o, and the system prompt that comes with Anthropic's tools, which is a
/// fact of the model ([`contexture_catalogue::ToolPrompt`]). The rest is bounded by what recorded requests were billed;
/// `docs/design/0004-token-estimates.md` has the figures.
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
    pub const fn for_format(format: Format) -> Self {
        const fn span(low: u64, high: u64) -> TokenBounds {
            TokenBounds::between(low, high)
        }
        match format {
            Format::OpenAiChat | Format::OpenAiResponses => Self {
                request: span(0, 4),
                system: span(3, 7),
                message: span(3, 4),
                call: span(0, 8),
                output: span(0, 5),
                tool: span(0, 12),
                tools: span(0, 240),
                tool_text: 40,
                reasoning: span(0, 12),
                schema: span(0, 60),
            },
            Format::Anthropic => Self {
                request: span(3, 3),
                system: span(0, 4),
                message: span(2, 5),
                call: span(10, 45),
                output: span(8, 30),
                tool: span(0, 14),
                tools: span(150, 804),
                tool_text: 80,
                reasoning: span(0, 40),
                schema: span(0, 200),
            },
            Format::Gemini => Self {
                request: span(0, 2),
                system: span(0, 4),
                message: span(0, 5),
                call: span(0, 8),
                output: span(0, 8),
                tool: span(0, 10),
                tools: span(0, 10),
                tool_text: 0,
                reasoning: TokenBounds::ZERO,
                schema: span(0, 10),
            },
            // Never sent to a provider, so nothing is added.
            Format::Ui | Format::Items => Self {
                request: TokenBounds::ZERO,
                system: TokenBounds::ZERO,
                message: TokenBounds::ZERO,
                call: TokenBounds::ZERO,
                output: TokenBounds::ZERO,
                tool: TokenBounds::ZERO,
                tools: TokenBounds::ZERO,
                tool_text: 100,
                reasoning: TokenBounds::ZERO,
                schema: TokenBounds::ZERO,
            },
        }
    }
}
