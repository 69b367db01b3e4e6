//! Where the media rules of a model come from, and how a rule per unit becomes a count.

use std::sync::OnceLock;

use contexture_catalogue::{Bounds, Catalogue, ImageRule, MediaRules, ModelSpec};

use crate::count::TokenCount;

/// The media rules of a model: its own, or the most careful ones if its provider publishes none.
#[must_use]
pub fn rules_of(model: &ModelSpec) -> &MediaRules {
    model.media.as_ref().unwrap_or_else(|| fallback_rules())
}

/// The rules that the catalogue keeps for models without any.
pub(super) fn fallback_rules() -> &'static MediaRules {
    static CAREFUL: OnceLock<MediaRules> = OnceLock::new();
    CAREFUL.get_or_init(|| {
        let rules = Catalogue::builtin().media_rules("unknown").cloned();
        debug_assert!(rules.is_some(), "the catalogue lacks the rules \"unknown\"");
        rules.unwrap_or(MediaRules {
            image: ImageRule::Fixed {
                low: 1,
                medium: 5_000,
                high: 5_000,
                original: 10_000,
            },
            page: Bounds {
                low: 1,
                count: 5_000,
                high: 10_000,
            },
            audio_second: None,
        })
    })
}

/// So many units (low, usual, high) of so many tokens each.
pub(super) fn multiply_bounds(unit: Bounds, (low, count, high): (u64, u64, u64)) -> TokenCount {
    TokenCount::estimate(
        low.saturating_mul(unit.low.into()),
        count.saturating_mul(unit.count.into()),
        high.saturating_mul(unit.high.into()),
    )
}
