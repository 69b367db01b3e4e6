//! Usage of a run: tokens, cost, answers, steps, time.
//!
//! A figure is absent until some call reports it, which is not the same as zero. Every call counts, whether or not its
//! answer was used, and a child's usage counts for its parent however the child ended.
//!
//! Not here: limits ([`crate::RunBudget`]), and reading a provider's report (`contexture-wire`).

use std::fmt;
use std::time::Duration;

use contexture_catalogue::{CacheKind, Meter, Money, Prices};
use contexture_compile::{CacheUsage, Rates};
use contexture_ir::Usage;
use serde::{Deserialize, Serialize};

/// Token counts; absent where no call reported any. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// All input tokens, those read from or written to a cache included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// All output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Input tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Output tokens used for reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Tokens {
    /// Returns input and output tokens together; an unknown figure counts as zero.
    #[must_use]
    pub fn total(&self) -> u64 {
        let known = |figure: Option<u64>| figure.unwrap_or(0);
        known(self.input).saturating_add(known(self.output))
    }

    fn add(&mut self, other: &Self) {
        let sum = |to: &mut Option<u64>, more: Option<u64>| {
            *to = match (*to, more) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            };
        };
        sum(&mut self.input, other.input);
        sum(&mut self.output, other.output);
        sum(&mut self.cache_read, other.cache_read);
        sum(&mut self.cache_write, other.cache_write);
        sum(&mut self.reasoning, other.reasoning);
    }
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_write_tokens: tokens.cache_write,
            reasoning_tokens: tokens.reasoning,
            ..Self::default()
        }
    }
}

impl From<&Usage> for Tokens {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_tokens,
            cache_write: usage.cache_write_tokens,
            reasoning: usage.reasoning_tokens,
        }
    }
}

/// What a run has used.
///
/// ```
/// use contexture_runs::{Money, RunUsage};
/// use contexture_ir::Usage;
///
/// let usage = Usage { input_tokens: Some(1_000), output_tokens: Some(50), ..Usage::default() };
/// let mut run = RunUsage::from_reported_cost(&usage, Money::from_micro_dollars(2_500));
/// let child = run;
/// run.roll_up(&child);
/// assert_eq!(run.to_string(), "2000 in, 100 out, $0.005, 2 answers, 0 steps, 0.0 s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunUsage {
    /// Tokens of all responses.
    pub tokens: Tokens,
    /// Cost; absent where no price is known. A lower bound if [`unpriced`](Self::unpriced) is not zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Answers of models, including those that were refused, cut short or not used.
    pub responses: u64,
    /// How many of these have a cost that is not fully known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Steps taken, those of children included.
    pub steps: u64,
    /// Elapsed time by a monotonic clock; stored in whole microseconds. Children's time is within their parent's.
    #[serde(rename = "elapsed_us", with = "duration_micros")]
    pub elapsed: Duration,
}

impl RunUsage {
    /// Usage of one call at these prices. `kind` is how its target caches, which determines the price of a cache write
    /// where the prices do not state one ([`Rates::for_request`]).
    #[must_use]
    pub(crate) fn from_price(usage: &Usage, prices: &Prices, kind: CacheKind) -> Self {
        let (cost, whole) = call_cost(usage, prices, kind);
        Self {
            cost,
            unpriced: u64::from(!whole),
            ..Self::unpriced_call(usage)
        }
    }

    /// Returns the cost as a figure for telemetry, which has no exact amounts.
    pub(crate) fn cost_in_dollars(&self) -> Option<f64> {
        // Through the decimal text, which gives the nearest float.
        self.cost?.to_decimal_string().parse().ok()
    }

    /// Usage of one call whose cost the provider reported.
    #[must_use]
    pub fn from_reported_cost(usage: &Usage, cost: Money) -> Self {
        Self {
            cost: Some(cost),
            unpriced: 0,
            ..Self::unpriced_call(usage)
        }
    }

    /// Usage of one call with an unknown cost.
    #[must_use]
    pub(crate) fn unpriced_call(usage: &Usage) -> Self {
        Self {
            tokens: usage.into(),
            responses: 1,
            unpriced: 1,
            ..Self::default()
        }
    }

    /// Adds other usage, its time included.
    pub fn add(&mut self, other: &Self) {
        self.roll_up(other);
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
    }

    /// Adds a child's usage except its time, which has passed for the parent too.
    pub fn roll_up(&mut self, child: &Self) {
        self.tokens.add(&child.tokens);
        // Unknown is not zero: cost stays absent until at least one price is known.
        self.cost = match (self.cost, child.cost) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.responses = self.responses.saturating_add(child.responses);
        self.unpriced = self.unpriced.saturating_add(child.unpriced);
        self.steps = self.steps.saturating_add(child.steps);
    }
}

/// Computes the cost of a call from its prices, and whether all of it is known.
fn call_cost(usage: &Usage, prices: &Prices, kind: CacheKind) -> (Option<Money>, bool) {
    let input = usage.input_tokens.map(|total| {
        let read = usage.cache_read_tokens.unwrap_or(0);
        let write = usage.cache_write_tokens.unwrap_or(0);
        let used = CacheUsage {
            read,
            write,
            write_long: 0,
            // Input tokens include cached ones; saturating, because providers report inconsistent numbers.
            fresh: total.saturating_sub(read).saturating_sub(write),
        };
        let rates = Rates::for_request(prices, kind, used.total_tokens());
        rates.map(|rates| used.input_cost(&rates))
    });
    let output = usage.output_tokens.map(|tokens| {
        // The price of output may depend on the size of the input.
        let price = prices.get(Meter::Output, usage.input_tokens.unwrap_or(0))?;
        Some(u128::from(tokens) * u128::from(price.micro_dollars_per_million()))
    });
    // Integers in pico-dollars, not floats: sums over many calls stay exact.
    let known = [input, output].map(Option::flatten);
    let whole = known.iter().all(Option::is_some);
    let sum = known.into_iter().flatten().reduce(u128::saturating_add);
    (sum.map(Money::from_pico_dollars), whole)
}

impl fmt::Display for RunUsage {
    /// Formats on one line: `1200 in (800 cached), 90 out, $0.0042, 3 answers, 2 steps, 8.1 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A script that says nothing of tokens used none and cost nothing: that is no bill.
        let is_some = |count: &u64| *count > 0;
        if let Some(input) = self.tokens.input.filter(is_some) {
            write!(f, "{input} in")?;
            if let Some(read) = self.tokens.cache_read {
                write!(f, " ({read} cached)")?;
            }
            f.write_str(", ")?;
        }
        if let Some(output) = self.tokens.output.filter(is_some) {
            write!(f, "{output} out, ")?;
        }
        if let Some(cost) = self.cost.filter(|cost| cost.pico_dollars() > 0) {
            let bound = if self.unpriced > 0 { "at least " } else { "" };
            write!(f, "{bound}{cost}, ")?;
        }
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(
            f,
            "{} answer{}, {} step{}, {:.1} s",
            self.responses,
            plural(self.responses),
            self.steps,
            plural(self.steps),
            self.elapsed.as_secs_f64()
        )
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Serde functions for durations in whole microseconds.
pub(crate) mod duration_micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    fn whole_micros(time: Duration) -> u64 {
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        whole_micros(*time).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }

    /// The same for an optional duration.
    pub(crate) mod maybe {
        use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, whole_micros};

        #[expect(clippy::ref_option, reason = "serde asks for it")]
        pub(crate) fn serialize<S: Serializer>(
            time: &Option<Duration>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            time.map(whole_micros).serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Duration>, D::Error> {
            let micros = Option::<u64>::deserialize(from)?;
            Ok(micros.map(Duration::from_micros))
        }
    }
}

#[cfg(test)]
mod tests {
    use contexture_catalogue::Price;

    use super::*;

    fn usage(input: u64, read: Option<u64>, write: Option<u64>, output: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_read_tokens: read,
            cache_write_tokens: write,
            ..Usage::default()
        }
    }

    /// $2 in, $8 out, $0.5 read.
    fn prices() -> Prices {
        let price = |micro| Some(Price::from_micro_dollars_per_million(micro));
        let mut prices = Prices::default();
        (prices.input, prices.output) = (price(2_000_000), price(8_000_000));
        prices.cache_read = price(500_000);
        prices
    }

    #[test]
    fn absent_is_not_zero() {
        let mut spent = RunUsage::default();
        assert_eq!(spent.tokens.cache_read, None);
        spent.add(&RunUsage::unpriced_call(&usage(10, None, None, 1)));
        assert_eq!(spent.tokens.cache_read, None);
        assert_eq!(spent.cost, None);
        spent.add(&RunUsage::unpriced_call(&usage(10, Some(0), None, 1)));
        assert_eq!(spent.tokens.cache_read, Some(0));
        spent.add(&RunUsage::unpriced_call(&Usage::default()));
        assert_eq!(spent.tokens.input, Some(20));
        assert_eq!((spent.responses, spent.unpriced), (3, 3));
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let cost = |usage: &Usage, kind| {
            let spent = RunUsage::from_price(usage, &prices(), kind);
            (spent.cost.map(|cost| cost.to_string()), spent.unpriced)
        };
        let told = |cost: &str, unpriced| (Some(cost.to_owned()), unpriced);
        let plain = usage(1_000, None, None, 100);
        assert_eq!(cost(&plain, CacheKind::None), told("$0.0028", 0));
        let cached = usage(1_000, Some(600), Some(200), 0);
        // 600 × 0.5 + 200 × 2 × 1.25 + 200 × 2, in millionths
        assert_eq!(cost(&cached, CacheKind::Explicit), told("$0.0012", 0));
        assert_eq!(cost(&cached, CacheKind::Automatic), told("$0.0011", 0));
        let half = Usage {
            output_tokens: None,
            ..plain
        };
        assert_eq!(cost(&half, CacheKind::None), told("$0.002", 1));
        assert_eq!(cost(&Usage::default(), CacheKind::None), (None, 1));
        let more_read_than_there_was = usage(10, Some(u64::MAX), Some(u64::MAX), u64::MAX);
        assert!(
            cost(&more_read_than_there_was, CacheKind::Explicit)
                .0
                .is_some()
        );
        let unknown = RunUsage::from_price(
            &usage(1, None, None, 1),
            &Prices::default(),
            CacheKind::None,
        );
        assert_eq!((unknown.cost, unknown.unpriced), (None, 1));
    }

    #[test]
    fn children_count_whole_but_for_their_time() {
        let mut parent = RunUsage {
            steps: 1,
            elapsed: Duration::from_secs(3),
            ..RunUsage::default()
        };
        let child = RunUsage {
            steps: 2,
            elapsed: Duration::from_secs(2),
            ..RunUsage::from_reported_cost(&usage(5, None, None, 6), Money::from_micro_dollars(7))
        };
        parent.roll_up(&child);
        assert_eq!((parent.steps, parent.tokens.total()), (3, 11));
        assert_eq!(parent.elapsed, Duration::from_secs(3));
        assert_eq!(parent.cost, child.cost);
        parent.add(&child);
        assert_eq!(parent.elapsed, Duration::from_secs(5));
        let mut most = RunUsage {
            responses: u64::MAX,
            elapsed: Duration::MAX,
            ..child
        };
        most.add(&child);
        assert_eq!((most.responses, most.elapsed), (u64::MAX, Duration::MAX));
    }

    #[test]
    fn the_stored_form_is_small_and_stable() {
        assert_eq!(
            serde_json::to_string(&RunUsage::default()).unwrap(),
            r#"{"tokens":{},"responses":0,"steps":0,"elapsed_us":0}"#
        );
        let spent = RunUsage {
            steps: 2,
            elapsed: Duration::from_micros(1_500_001),
            unpriced: 1,
            ..RunUsage::from_reported_cost(
                &usage(5, Some(4), None, 6),
                Money::from_micro_dollars(7),
            )
        };
        let json = serde_json::to_string(&spent).unwrap();
        assert_eq!(
            json,
            r#"{"tokens":{"input":5,"output":6,"cache_read":4},"cost":"0.000007","responses":1,"unpriced":1,"steps":2,"elapsed_us":1500001}"#
        );
        assert_eq!(serde_json::from_str::<RunUsage>(&json).unwrap(), spent);
        assert_eq!(
            serde_json::from_str::<RunUsage>("{}").unwrap(),
            RunUsage::default()
        );
        assert_eq!(
            spent.to_string(),
            "5 in (4 cached), 6 out, at least $0.000007, 1 answer, 2 steps, 1.5 s"
        );
    }
}
