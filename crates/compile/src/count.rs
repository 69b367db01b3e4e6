//! Token counts with their bounds, and the constants providers put around messages.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use contexture_tokens::TokenCount;
use contexture_wire::Format;

/// A number of tokens, between two bounds; they are equal where counting is exact. Budgets hold
/// against `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// At least so many.
    pub(crate) low: u64,
    /// At most so many, and what is budgeted.
    pub(crate) high: u64,
}

impl Tokens {
    /// None.
    pub(crate) const ZERO: Self = Self { low: 0, high: 0 };

    /// Exactly so many.
    pub(crate) const fn exact(tokens: u64) -> Self {
        Self {
            low: tokens,
            high: tokens,
        }
    }
}

impl From<TokenCount> for Tokens {
    fn from(count: TokenCount) -> Self {
        Self {
            low: count.low,
            high: count.high,
        }
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Never below zero.
impl Sub for Tokens {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_sub(other.low),
            high: self.high.saturating_sub(other.high),
        }
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

/// What a format adds around the text it is given.
///
/// Only OpenAI has published its constants, for Chat Completions: three tokens a message and three
/// that prime the answer (OpenAI Cookbook, "How to count tokens with tiktoken"); a tool's frame there
/// is at most ten tokens beside its own text. Anthropic states only the system prompt that tools
/// bring with them (346 tokens for the current models, "Tool use: pricing"). The rest is rounded up
/// from what requests of a known text were billed, so that a sum errs to the safe side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Once a request.
    pub request: u64,
    /// For the system prompt, if there is one.
    pub system: u64,
    /// For each element of the array of messages.
    pub message: u64,
    /// For each call of a function, beside its name and arguments.
    pub call: u64,
    /// For each output of a function, beside its text.
    pub output: u64,
    /// For each tool, beside the JSON of its definition.
    pub tool: u64,
    /// Once, if there are tools.
    pub tools: u64,
}

impl Framing {
    /// The constants of a format.
    #[must_use]
    pub const fn of(format: Format) -> Self {
        match format {
            Format::OpenAiChat | Format::OpenAiResponses => Self {
                request: 3,
                system: 3,
                message: 3,
                call: 6,
                output: 3,
                tool: 10,
                tools: 12,
            },
            Format::Anthropic => Self {
                request: 3,
                system: 4,
                message: 4,
                call: 12,
                output: 12,
                tool: 12,
                tools: 346,
            },
            Format::Gemini => Self {
                request: 2,
                system: 4,
                message: 5,
                call: 8,
                output: 8,
                tool: 10,
                tools: 10,
            },
            Format::Ui | Format::Items => Self {
                request: 0,
                system: 0,
                message: 0,
                call: 0,
                output: 0,
                tool: 0,
                tools: 0,
            },
        }
    }
}
