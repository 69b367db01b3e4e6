//! The part of a counted range in which the truth has been found to lie.
//!
//! Not here: how that was found; see `calibration`.

use contexture_prompt_cache::Framing;
use contexture_tokens::TokenBounds;
use serde::{Deserialize, Serialize};

/// Places within a range are counted in so many parts.
pub(crate) const PARTS: u64 = 10_000;

/// Where in its range a count is taken to lie while nothing is known of the model, in ten-thousandths of the width: at or
/// above 41 of the 44 recorded bills of at least 300 tokens. `docs/design/0004-token-estimates.md` has the figures.
const LIKELY: u16 = 6_000;
/// Per cent of recorded bills that lie above [`LIKELY`].
const ABOVE_LIKELY: f64 = 7.0;

/// The count that a budget goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetCount {
    /// The most that a request may have: it fits, and a part of the window stays empty.
    #[default]
    Upper,
    /// What a request is likely to have: the window is filled, and now and then a request is refused as too long.
    /// Whoever sends it then compiles once more by the upper bound
    /// ([`RetryBudget`](crate::RetryBudget)).
    Likely,
}

impl BudgetCount {
    /// Its word, as reports have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upper => "upper",
            Self::Likely => "likely",
        }
    }

    /// Whether every request counts by the upper bound.
    // By reference, as serde asks for it.
    #[must_use]
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(crate) const fn is_upper(&self) -> bool {
        matches!(self, Self::Upper)
    }
}

/// What is left of a range, in ten-thousandths of its width from its low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CalibratedRange {
    /// Where it begins.
    pub(crate) low: u16,
    /// Where it ends. It is beyond the whole width only where the provider refused a request with a count above its range.
    pub(crate) high: u16,
    /// The highest place that was reported, where that decides better than what holds for all models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) likely: Option<u16>,
    /// From how many reports `likely` was found.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) reports: u16,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_none(reports: &u16) -> bool {
    *reports == 0
}

impl CalibratedRange {
    /// The whole range.
    pub(crate) const NONE: Self = Self {
        low: 0,
        high: 10_000,
        likely: None,
        reports: 0,
    };

    /// The range, narrowed. Ranges that are exact, and those very wide for their size, stay as they are.
    #[must_use]
    pub fn apply_to(self, counted: TokenBounds) -> TokenBounds {
        if is_comparable(counted) {
            self.scale_bounds(counted)
        } else {
            counted
        }
    }

    /// The range up to the likely place: what it holds is budgeted in the place of the upper bound.
    pub(crate) fn up_to_likely(self) -> Self {
        let likely = self.likely_place();
        Self {
            low: self.low.min(likely),
            high: likely,
            ..self
        }
    }

    fn likely_place(self) -> u16 {
        self.likely.unwrap_or(LIKELY).min(self.high)
    }

    /// The chance in per cent that a request has more than its likely count.
    pub(crate) fn chance_above_likely(self) -> f64 {
        match self.reports {
            0 => ABOVE_LIKELY,
            // Of n reports alike, the next lies above them all once in n + 1 times.
            reports => (1_000.0 / (f64::from(reports) + 1.0)).round() / 10.0,
        }
    }

    fn scale_bounds(self, counted: TokenBounds) -> TokenBounds {
        let width = u128::from(counted.high.saturating_sub(counted.low));
        // Integers in u128: the same bounds on every machine, without rounding of floats.
        let of = |part: u16| width * u128::from(part);
        let parts = u128::from(PARTS);
        let above = |tokens: u128| {
            let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
            counted.low.saturating_add(tokens)
        };
        let low = above(of(self.low) / parts);
        TokenBounds {
            low,
            // Rounded up, so the narrowed range never excludes a count that the wider one allowed.
            high: above(of(self.high).div_ceil(parts)).max(low),
        }
    }

    /// What a format adds, each range narrowed.
    pub(crate) fn scale_framing(self, framing: Framing) -> Framing {
        let of = |tokens: TokenBounds| self.scale_bounds(tokens);
        Framing {
            request: of(framing.request),
            system: of(framing.system),
            message: of(framing.message),
            call: of(framing.call),
            output: of(framing.output),
            tool: of(framing.tool),
            tools: of(framing.tools),
            tool_text: framing.tool_text,
            reasoning: of(framing.reasoning),
            schema: of(framing.schema),
        }
    }
}

/// Whether a range is about counting, and not about something that only the provider sees.
pub(crate) const fn is_comparable(counted: TokenBounds) -> bool {
    counted.high <= counted.low.saturating_mul(3).saturating_add(100)
}
