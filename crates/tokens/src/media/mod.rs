//! Tokens of images, files and sound, by the rule of the model they are sent to.
//!
//! ```
//! use contexture_catalogue::Catalogue;
//! use contexture_tokens::media::{Detail, Dimensions, image_tokens, rules_of};
//!
//! let model = Catalogue::builtin().resolve("gpt-4o")?;
//! let size = Dimensions { width: 1024, height: 1024 };
//! assert_eq!(image_tokens(rules_of(model), Some(size), Detail::High).count, 765);
//! # Ok::<(), contexture_catalogue::CatalogueError>(())
//! ```
//!
//! All counts here are estimates with bounds: providers publish their rules but reserve the right to differ. What
//! cannot be measured (a remote image, a broken header) counts as the largest that the rule allows, and each function
//! says what that is. Not here: fetching anything, and decoding pixels; only headers are read.

mod audio;
mod dimensions;
mod document;
mod image;

pub use audio::audio_tokens;
pub use dimensions::Dimensions;
pub use document::{document_tokens, pdf_pages};
pub use image::{Detail, UnknownDetail, image_tokens};

use std::sync::OnceLock;

use contexture_catalogue::{Bounds, Catalogue, ImageRule, MediaRules, ModelSpec};

use crate::count::TokenCount;

/// The media rules of a model: its own, or the most careful ones if its provider publishes none.
#[must_use]
pub fn rules_of(model: &ModelSpec) -> &MediaRules {
    model.media.as_ref().unwrap_or_else(|| fallback_rules())
}

/// The rules that the catalogue keeps for models without any.
fn fallback_rules() -> &'static MediaRules {
    static CAREFUL: OnceLock<MediaRules> = OnceLock::new();
    // Built once: models without rules ask for it on every image.
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
fn multiply_bounds(unit: Bounds, (low, count, high): (u64, u64, u64)) -> TokenCount {
    TokenCount::estimate(
        low.saturating_mul(unit.low.into()),
        count.saturating_mul(unit.count.into()),
        high.saturating_mul(unit.high.into()),
    )
}
