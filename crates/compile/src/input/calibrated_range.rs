//! The part of a counted range in which the truth has been found to lie.
//!
//! Not here: how that was found; see `calibration`.

use contexture_prompt_cache::Framing;
use contexture_tokens::TokenBounds;
use serde::{Deserialize, Serialize};

/// Places within a range are counted in so many parts.
pub(crate) const PARTS: u64 = 10_000;

/// What is left of a range, in ten-thousandths of its width from its low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CalibratedRange {
    /// Where it begins.
    pub(crate) low: u16,
    /// Where it ends.
    pub(crate) high: u16,
}

impl CalibratedRange {
    /// The whole range.
    pub(crate) const NONE: Self = Self {
        low: 0,
        high: 10_000,
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

    fn scale_bounds(self, counted: TokenBounds) -> TokenBounds {
        let width = u128::from(counted.high.saturating_sub(counted.low));
        // Integers in u128: the same bounds on every machine, without rounding of floats.
        let of = |part: u16| width * u128::from(part);
        let parts = u128::from(PARTS);
        let above = |tokens: u128| {
            let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
            // What was stored may have been damaged.
            counted.low.saturating_add(tokens).min(counted.high)
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
