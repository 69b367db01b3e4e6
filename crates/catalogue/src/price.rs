//! Prices, usage and cost, in integers.
//!
//! A price is a whole number of micro-dollars per million tokens, so the cost of any number of tokens is a whole
//! number of pico-dollars (10⁻¹² dollars) and nothing is rounded on the way.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A price in micro-dollars per million tokens, which is pico-dollars per token.
///
/// In data it is dollars per million tokens, as a number or decimal text with at most six decimals: `"0.075"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(u64);

impl Price {
    /// No price is above a million dollars per million tokens.
    // Keeps sums far from the end of 128 bits, and catches prices given in the wrong unit.
    const MAX_MICRO_DOLLARS: u64 = 1_000_000_000_000;

    /// A price of so many micro-dollars per million tokens.
    #[must_use]
    pub const fn from_micro_dollars_per_million(micro_dollars: u64) -> Self {
        Self(micro_dollars)
    }

    /// Micro-dollars per million tokens.
    #[must_use]
    pub const fn micro_dollars_per_million(self) -> u64 {
        self.0
    }

    /// Reads decimal text, dollars per million tokens.
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || decimals.len() > 6 || !digits(whole) || !digits(decimals) {
            return None;
        }
        let whole: u64 = whole.parse().ok()?;
        // Padded to micro-dollars as text; a float would round `0.075`.
        let decimals: u64 = format!("{decimals:0<6}").parse().ok()?;
        let price = whole.checked_mul(1_000_000)?.checked_add(decimals)?;
        (price <= Self::MAX_MICRO_DOLLARS).then_some(Self(price))
    }
}

impl fmt::Display for Price {
    /// Dollars per million tokens, without trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, u128::from(self.0), 6)
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        // A number in JSON may be whole or not; serde tries the variants in this order.
        enum Raw {
            Text(String),
            Whole(u64),
            Number(f64),
        }
        // A float prints as the shortest decimal that names it, which is what the author wrote.
        let text = match Raw::deserialize(deserializer)? {
            Raw::Text(text) => text,
            Raw::Whole(number) => number.to_string(),
            Raw::Number(number) => number.to_string(),
        };
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "price {text:?}, expected dollars per million tokens from 0 to 1000000 with at most six decimals"
            ))
        })
    }
}

/// What is billed separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Meter {
    /// Input neither read from nor written to a cache.
    Input,
    /// Output, reasoning included.
    Output,
    /// Input read from a cache.
    CacheRead,
    /// Input written to a cache for its usual time (five minutes at Anthropic).
    CacheWrite,
    /// Input written to a cache for an hour.
    CacheWriteHour,
    /// Sound in the input.
    InputAudio,
}

impl Meter {
    /// All meters, in the order in which prices list them.
    pub const ALL: [Self; 6] = [
        Self::Input,
        Self::Output,
        Self::CacheRead,
        Self::CacheWrite,
        Self::CacheWriteHour,
        Self::InputAudio,
    ];
}

/// Tokens used, by meter; each token in one field only, and absent where it was not reported.
///
/// Providers report differently: OpenAI's and Gemini's prompt tokens include the cached ones, which have to be
/// subtracted for `input`; Anthropic's do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of [`Meter::Input`].
    pub input: Option<u64>,
    /// Tokens of [`Meter::Output`].
    pub output: Option<u64>,
    /// Tokens of [`Meter::CacheRead`].
    pub cache_read: Option<u64>,
    /// Tokens of [`Meter::CacheWrite`].
    pub cache_write: Option<u64>,
    /// Tokens of [`Meter::CacheWriteHour`].
    pub cache_write_1h: Option<u64>,
    /// Tokens of [`Meter::InputAudio`].
    pub input_audio: Option<u64>,
}

impl Usage {
    /// The tokens on one meter.
    #[must_use]
    pub fn get(&self, meter: Meter) -> Option<u64> {
        match meter {
            Meter::Input => self.input,
            Meter::Output => self.output,
            Meter::CacheRead => self.cache_read,
            Meter::CacheWrite => self.cache_write,
            Meter::CacheWriteHour => self.cache_write_1h,
            Meter::InputAudio => self.input_audio,
        }
    }

    /// All tokens of the input that were reported, which is what price tiers go by.
    #[must_use]
    pub(crate) fn total_input(&self) -> u64 {
        // Sound and cached tokens count too: providers choose the tier by all of the input.
        Meter::ALL
            .into_iter()
            .filter(|meter| *meter != Meter::Output)
            .filter_map(|meter| self.get(meter))
            .fold(0, u64::saturating_add)
    }
}

/// What a model's tokens cost; absent where it is not known, which is not the same as free.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Prices {
    /// Price of [`Meter::Input`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Price>,
    /// Price of [`Meter::Output`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Price>,
    /// Price of [`Meter::CacheRead`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Price>,
    /// Price of [`Meter::CacheWrite`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Price>,
    /// Price of [`Meter::CacheWriteHour`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Price>,
    /// Price of [`Meter::InputAudio`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio: Option<Price>,
    /// Other prices for the whole request once its input is large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// Prices of a whole request whose input exceeds a number of tokens; what is absent here stays as it is below.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceTier {
    /// Applies to requests with more input tokens than this.
    pub above_input_tokens: u64,
    /// Price of [`Meter::Input`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Price>,
    /// Price of [`Meter::Output`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Price>,
    /// Price of [`Meter::CacheRead`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Price>,
    /// Price of [`Meter::CacheWrite`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Price>,
    /// Price of [`Meter::CacheWriteHour`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Price>,
    /// Price of [`Meter::InputAudio`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio: Option<Price>,
}

impl PriceTier {
    fn get(&self, meter: Meter) -> Option<Price> {
        match meter {
            Meter::Input => self.input,
            Meter::Output => self.output,
            Meter::CacheRead => self.cache_read,
            Meter::CacheWrite => self.cache_write,
            Meter::CacheWriteHour => self.cache_write_1h,
            Meter::InputAudio => self.input_audio,
        }
    }
}

impl Prices {
    /// The price on one meter for a request with so many input tokens.
    #[must_use]
    pub fn get(&self, meter: Meter, input_tokens: u64) -> Option<Price> {
        let base = match meter {
            Meter::Input => self.input,
            Meter::Output => self.output,
            Meter::CacheRead => self.cache_read,
            Meter::CacheWrite => self.cache_write,
            Meter::CacheWriteHour => self.cache_write_1h,
            Meter::InputAudio => self.input_audio,
        };
        // The highest tier that applies and names this meter. What a tier leaves open is inherited from the
        // tier below, so each meter is looked up by itself.
        self.tiers
            .iter()
            .filter(|tier| input_tokens > tier.above_input_tokens)
            .filter_map(|tier| Some((tier.above_input_tokens, tier.get(meter)?)))
            .max_by_key(|(above, _)| *above)
            .map(|(_, price)| price)
            .or(base)
    }

    /// What the usage of one request costs.
    ///
    /// Tokens on a meter without a price are named in [`Cost::unpriced`] and not in the total.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Cost {
        let input = usage.total_input();
        let mut cost = Cost::default();
        for meter in Meter::ALL {
            match (usage.get(meter), self.get(meter, input)) {
                // No tokens cost nothing even where the price is unknown, and must not make the cost
                // incomplete.
                (None | Some(0), _) => {}
                (Some(tokens), Some(price)) => {
                    // 64 bits times 64 bits fit into 128: nothing overflows and nothing is rounded.
                    cost.pico_dollars += u128::from(tokens) * u128::from(price.0);
                }
                (Some(_), None) => cost.unpriced.push(meter),
            }
        }
        cost
    }
}

/// A sum of money, and what it does not cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// The exact sum of all priced tokens in 10⁻¹² dollars.
    pub pico_dollars: u128,
    /// Meters with tokens whose price is not known; the sum is a lower bound if there are any.
    pub unpriced: Vec<Meter>,
}

impl Cost {
    /// Whether every reported token has a price.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unpriced.is_empty()
    }

    /// The sum in 10⁻¹² dollars; `None` if no token that was used has a known price.
    #[must_use]
    pub fn known_pico_dollars(&self) -> Option<u128> {
        (self.pico_dollars > 0 || self.is_complete()).then_some(self.pico_dollars)
    }

    /// The sum in millionths of a dollar, halves rounded up.
    #[must_use]
    pub fn micro_dollars(&self) -> u128 {
        // Saturating: an absurd sum shows as the largest one and does not panic.
        self.pico_dollars.saturating_add(500_000) / 1_000_000
    }
}

impl AddAssign<&Cost> for Cost {
    /// Adds a cost; the sum ends at the largest there is, and names each meter without a price once.
    fn add_assign(&mut self, more: &Self) {
        self.pico_dollars = self.pico_dollars.saturating_add(more.pico_dollars);
        for meter in &more.unpriced {
            if !self.unpriced.contains(meter) {
                self.unpriced.push(*meter);
            }
        }
    }
}

impl fmt::Display for Cost {
    /// Exact dollars without trailing zeros: `$0.01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        write_decimal(f, self.pico_dollars, 12)
    }
}

/// Writes a number of `decimals` decimal places without trailing zeros.
pub(crate) fn write_decimal(
    f: &mut fmt::Formatter<'_>,
    value: u128,
    decimals: usize,
) -> fmt::Result {
    // Padded to at least one digit before the point, so that a fraction of a dollar splits like any other sum.
    let digits = format!("{value:0>width$}", width = decimals + 1);
    let (whole, rest) = digits.split_at(digits.len() - decimals);
    match rest.trim_end_matches('0') {
        "" => f.write_str(whole),
        rest => write!(f, "{whole}.{rest}"),
    }
}
