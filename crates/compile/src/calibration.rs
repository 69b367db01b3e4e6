//! What reported usage teaches about our counts: where within its bounds the truth lies, model by model.
//!
//! A count is a range. What a provider reports for a request lies somewhere in it: at its low end, in the middle, near the
//! top. For one model these places resemble each other, so after some reports the next range can be narrowed to the
//! places seen, with a margin that shrinks as reports add up. The narrowed range always holds every report it was
//! learned from, and never leaves the range it came from.
//!
//! Two kinds of reports teach nothing. One outside its range says something of the request (the provider added a text,
//! or reports nothing at all), not of our counting; where these are many, nothing is narrowed. And a range that is
//! very wide for its size is about a picture or file that only the provider sees.
//!
//! Not here: how a range is narrowed (`narrowing`), where reports come from, when what was learned is stored.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use contexture_tokens::TokenBounds;
use contexture_wire::TooLong;
use serde::{Deserialize, Serialize};

use crate::input::{CalibratedRange, CompileRequest, PARTS, is_comparable};
use contexture_report::Report;

/// How many of the newest reports of a model are remembered.
const REMEMBERED: usize = 64;
/// How many must have taught something before a range is narrowed.
const ENOUGH: usize = 6;
/// One in so many reports may lie outside its range.
const OUTSIDE: usize = 8;
/// Narrowed ranges begin and end at multiples of this many parts, so that they seldom change.
const STEP: u64 = 250;

/// What was learned of each model. Its JSON is stable.
///
/// ```
/// use contexture_compile::{Calibration, TokenBounds};
///
/// let mut calibration = Calibration::default();
/// let range = |low, high| TokenBounds { low, high };
/// for size in [1_000, 1_400, 2_100, 2_800, 3_500, 4_700, 6_000, 8_000] {
///     // The provider reports 1.2 times the low bound, where the high bound is 1.5 times as much.
///     calibration.learn_from_range("claude", range(size, size * 3 / 2), size * 6 / 5);
/// }
/// let narrowed = calibration.calibrated_range("claude").unwrap().apply_to(range(10_000, 15_000));
/// assert!(narrowed.low > 10_000 && narrowed.high < 15_000);
/// assert!(narrowed.low <= 12_000 && 12_000 <= narrowed.high);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    models: BTreeMap<String, VecDeque<BoundsPosition>>,
}

/// Where a report lay in its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum BoundsPosition {
    /// In ten-thousandths of its width, from the low end: no more than, no less than.
    Within(u16, u16),
    /// The report lay outside its range.
    Outside(()),
}

/// What was counted of a compiled request, before it was narrowed, and for whom: what there is to learn from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CountedRequest {
    /// The format, `anthropic` say, or the name of a target adapter.
    pub format: Cow<'static, str>,
    /// The model as the provider knows it.
    pub model: String,
    /// All of the request.
    #[serde(with = "bounds_as_pair")]
    pub counted: TokenBounds,
}

/// Writes bounds as `[low, high]`.
mod bounds_as_pair {
    use contexture_tokens::TokenBounds;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bounds: &TokenBounds,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (bounds.low, bounds.high).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<TokenBounds, D::Error> {
        let (low, high) = Deserialize::deserialize(deserializer)?;
        Ok(TokenBounds { low, high })
    }
}

impl From<&Report> for CountedRequest {
    fn from(report: &Report) -> Self {
        let counted = &report.totals.counted;
        Self {
            format: report.target.format.clone(),
            model: report.target.model.clone(),
            counted: TokenBounds {
                low: counted.low,
                high: counted.high,
            },
        }
    }
}

impl Calibration {
    /// Learns from what a provider reported for a compiled request: all its input tokens, cached ones included.
    pub fn learn_from_usage(&mut self, counting: &CountedRequest, reported: u64) {
        let model = model_key(&counting.format, &counting.model);
        self.learn_from_range(&model, counting.counted, reported);
    }

    /// Learns from a range that was counted, not narrowed, and what was reported for it. `model` is any name under which
    /// counting is alike.
    pub fn learn_from_range(&mut self, model: &str, counted: TokenBounds, reported: u64) {
        // An exact count has no range to place a report in; a very wide one is about media that only
        // the provider sees.
        if counted.high <= counted.low || !is_comparable(counted) {
            return;
        }
        let width = u128::from(counted.high - counted.low);
        let place = match reported.checked_sub(counted.low) {
            Some(above) if u128::from(above) <= width => {
                let scaled = u128::from(above) * u128::from(PARTS);
                BoundsPosition::Within(
                    clamp_parts(scaled / width),
                    clamp_parts(scaled.div_ceil(width)),
                )
            }
            // Remembered too: many reports outside their ranges mean that the ranges cannot be trusted.
            _ => BoundsPosition::Outside(()),
        };
        self.remember(model, place);
    }

    /// What is left of this model's ranges; `None` while too little is known.
    #[must_use]
    pub fn calibrated_range(&self, model: &str) -> Option<CalibratedRange> {
        let known = self.models.get(model)?;
        let within: Vec<(u64, u64)> = known
            .iter()
            .filter_map(|place| match *place {
                BoundsPosition::Within(low, high) if low <= high => {
                    Some((u64::from(low), u64::from(high)))
                }
                _ => None,
            })
            .collect();
        let outside = known.len() - within.len();
        let most = within.iter().map(|(_, high)| *high).max()?;
        if within.len() < ENOUGH || outside * OUTSIDE > known.len() {
            return raised_range(most);
        }
        let least = within.iter().map(|(low, _)| *low).min()?;
        // Of n reports alike, the next lies beyond all of them once in n + 1 times on either side; how far is not known
        // but for the reports being spread over the range.
        let margin = 2 * PARTS / within.len() as u64;
        // Rounded outwards, so the range holds every report that it was learned from.
        let low = least.saturating_sub(margin) / STEP * STEP;
        let high = most.saturating_add(margin).div_ceil(STEP) * STEP;
        // Only a refusal lies beyond the range.
        let widest = most.div_ceil(STEP).saturating_mul(STEP).max(PARTS);
        let narrowing = CalibratedRange {
            low: clamp_parts(u128::from(low)),
            high: u16::try_from(high.min(widest)).unwrap_or(u16::MAX),
            likely: Some(step_above(most)),
            reports: u16::try_from(within.len()).unwrap_or(u16::MAX),
        };
        // A range that narrows nothing is no range: requests stay equal to those without calibration.
        (narrowing != CalibratedRange::NONE).then_some(narrowing)
    }

    /// Learns from a refusal: the provider counted more than it takes. Without its count the request is taken to have
    /// had the most that was counted for it.
    ///
    /// A count above the range is believed, as one in a bill is not: the refusal is about this very request.
    ///
    /// ```
    /// use contexture_compile::{BudgetCount, Calibration, Compiler, CountedRequest, Target};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_ir::{Message, Role};
    /// use contexture_wire::TooLong;
    ///
    /// let target = Target::anthropic("claude-sonnet-4-5").count(BudgetCount::Likely);
    /// let items = [Message::text(Role::User, "What is the weather like? ".repeat(500)).into()];
    /// let compiler = Compiler::new(Catalogue::builtin());
    /// let report = compiler.compile(&items, &target)?.report;
    /// let mut calibration = Calibration::default();
    /// calibration.learn_from_refusal(&CountedRequest::from(&report), TooLong::default());
    /// // From now on the upper bound is what is likely.
    /// let range = calibration.calibrated_range_of(&target.build_request(Catalogue::builtin())?);
    /// let next = compiler.with_calibrated_range(range).compile(&items, &target)?.report;
    /// assert!(next.totals.tokens > report.totals.tokens);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn learn_from_refusal(&mut self, counting: &CountedRequest, refused: TooLong) {
        let counted = counting.counted;
        if counted.high <= counted.low || !is_comparable(counted) {
            return;
        }
        let width = u128::from(counted.high - counted.low);
        let tokens = refused.tokens.unwrap_or(counted.high).max(counted.low);
        let place = u128::from(tokens - counted.low) * u128::from(PARTS);
        let place = u16::try_from(place.div_ceil(width)).unwrap_or(u16::MAX);
        let model = model_key(&counting.format, &counting.model);
        self.remember(&model, BoundsPosition::Within(place, place));
    }

    fn remember(&mut self, model: &str, place: BoundsPosition) {
        let known = self.models.entry(model.to_owned()).or_default();
        known.push_back(place);
        // Only the newest count: a provider may change how it counts at any time.
        while known.len() > REMEMBERED {
            known.pop_front();
        }
    }

    /// The same for the model of a request.
    #[must_use]
    pub fn calibrated_range_of(&self, request: &CompileRequest) -> Option<CalibratedRange> {
        self.calibrated_range(&model_key(request.target_name(), &request.model))
    }
}

impl CompileRequest {
    /// The same with ranges narrowed by what was learned of its model. Known content may count less than before, so
    /// hosts do this where an epoch begins, or from the first call on.
    #[must_use]
    pub fn with_calibration(mut self, calibration: &Calibration) -> Self {
        self.calibrated_range = calibration.calibrated_range_of(&self);
        self
    }
}

/// What few reports say: nothing, unless one of them lies above what is likely of all models.
fn raised_range(most: u64) -> Option<CalibratedRange> {
    let likely = step_above(most);
    let unknown = CalibratedRange::NONE;
    (likely > unknown.up_to_likely().high).then_some(CalibratedRange {
        high: unknown.high.max(likely),
        likely: Some(likely),
        reports: 0,
        ..unknown
    })
}

/// The next step at or above a place.
fn step_above(place: u64) -> u16 {
    u16::try_from(place.div_ceil(STEP).saturating_mul(STEP)).unwrap_or(u16::MAX)
}

fn model_key(format: &str, model: &str) -> String {
    format!("{format}/{model}")
}

/// A number of parts, at most all.
fn clamp_parts(parts: u128) -> u16 {
    u16::try_from(parts.min(u128::from(PARTS))).unwrap_or(u16::MAX)
}
