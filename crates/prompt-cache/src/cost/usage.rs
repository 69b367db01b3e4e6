//! What a call reads from the cache, writes to it, and costs, in whole pico-dollars.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use contexture_catalogue::{CacheKind, Meter, Prices};
use serde::Serialize;

/// The input tokens of one call or of many, by what is paid for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheUsage {
    /// Read from the cache.
    pub read: u64,
    /// Written for the usual time, where writing has a price of its own.
    pub write: u64,
    /// Written for the longer time.
    pub write_long: u64,
    /// Tokens neither read from the cache nor written to it.
    pub fresh: u64,
}

impl CacheUsage {
    /// All input tokens.
    #[must_use]
    pub const fn total_tokens(&self) -> u64 {
        self.read
            .saturating_add(self.write)
            .saturating_add(self.write_long)
            .saturating_add(self.fresh)
    }

    /// What they cost, in pico-dollars.
    #[must_use]
    pub fn input_cost(&self, rates: &Rates) -> u128 {
        // Whole pico-dollars in u128: exact, and far from overflow for any price and any window.
        let of = |tokens: u64, rate: u64| u128::from(tokens) * u128::from(rate);
        [
            of(self.read, rates.read),
            of(self.write, rates.write),
            of(self.write_long, rates.write_long),
            of(self.fresh, rates.input),
        ]
        .into_iter()
        .fold(0, u128::saturating_add)
    }
}

impl Add for CacheUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            write: self.write.saturating_add(other.write),
            write_long: self.write_long.saturating_add(other.write_long),
            fresh: self.fresh.saturating_add(other.fresh),
        }
    }
}

impl AddAssign for CacheUsage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for CacheUsage {
    fn sum<I: Iterator<Item = Self>>(uses: I) -> Self {
        uses.fold(Self::default(), Add::add)
    }
}

/// What input tokens cost, in pico-dollars a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Price of input that is not cached.
    pub input: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written for the usual time.
    pub write: u64,
    /// Written for the longer time.
    pub write_long: u64,
}

impl Rates {
    /// The rates of a request of so many input tokens. Nothing if the price of input is not known.
    ///
    /// A read whose price is not known costs what input costs. A write costs what input costs where
    /// the provider caches by itself; where markers decide, 1.25 times that for the usual time and twice
    /// that for the longer one, which is what Anthropic asks for every model
    /// (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pricing>).
    #[must_use]
    pub fn for_request(prices: &Prices, kind: CacheKind, input_tokens: u64) -> Option<Self> {
        let get = |meter| {
            let price = prices.get(meter, input_tokens)?;
            Some(price.micro_dollars_per_million())
        };
        let input = get(Meter::Input)?;
        let (write, long) = match kind {
            CacheKind::Explicit => (input.saturating_add(input / 4), input.saturating_mul(2)),
            _ => (input, input),
        };
        let write = get(Meter::CacheWrite).unwrap_or(write);
        Some(Self {
            input,
            read: get(Meter::CacheRead).unwrap_or(input),
            write,
            write_long: get(Meter::CacheWriteHour).unwrap_or(long.max(write)),
        })
    }
}

/// A question to a model, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Tokens of its input.
    pub input: CacheUsage,
    /// Tokens of its answer.
    pub answer: u64,
}

impl Question {
    /// What it costs, in pico-dollars; `None` where the catalogue has no price of the input or of the answer.
    #[must_use]
    pub fn cost(&self, prices: &Prices, kind: CacheKind) -> Option<u128> {
        let tokens = self.input.total_tokens();
        let rates = Rates::for_request(prices, kind, tokens)?;
        let output = prices.get(Meter::Output, tokens)?;
        let answer =
            u128::from(self.answer).saturating_mul(u128::from(output.micro_dollars_per_million()));
        Some(self.input.input_cost(&rates).saturating_add(answer))
    }
}
