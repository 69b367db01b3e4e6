//! Token counts with their bounds, and the constants providers put around messages.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use contexture_ir::Item;
use contexture_tokens::TokenCount;
use contexture_wire::Format;

/// A number of tokens between two bounds, which are equal where counting is exact. Budgets hold against
/// `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBounds {
    /// At least so many.
    pub low: u64,
    /// At most so many, and what is budgeted.
    pub high: u64,
}

impl TokenBounds {
    /// None.
    pub(crate) const ZERO: Self = Self { low: 0, high: 0 };

    /// From so many to so many.
    pub(crate) const fn between(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The middle between the bounds: the best single figure.
    #[must_use]
    pub const fn midpoint(self) -> u64 {
        self.low.midpoint(self.high)
    }

    /// So many times as much.
    pub(crate) const fn times(self, count: u64) -> Self {
        Self {
            low: self.low.saturating_mul(count),
            high: self.high.saturating_mul(count),
        }
    }
}

impl From<TokenCount> for TokenBounds {
    fn from(count: TokenCount) -> Self {
        Self {
            low: count.low,
            high: count.high,
        }
    }
}

impl Add for TokenBounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }
}

impl AddAssign for TokenBounds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Never below zero.
impl Sub for TokenBounds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_sub(other.low),
            high: self.high.saturating_sub(other.high),
        }
    }
}

impl Sum for TokenBounds {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

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
    /// What stands around an item within its message.
    pub(crate) const fn item_overhead(&self, item: &Item) -> TokenBounds {
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
