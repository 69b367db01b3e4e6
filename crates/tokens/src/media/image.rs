//! Tokens of an image.
//!
//! The rules are those of the providers' image guides (OpenAI "Images and vision", Anthropic "Vision", Google "Image
//! understanding" and "Media resolution"), read as data from the catalogue.

use std::str::FromStr;

use contexture_catalogue::{AutoDetail, ImageRule, MediaRules, PatchLimit};

use super::dimensions::Dimensions;
use crate::count::TokenCount;

/// How closely the model is asked to look: OpenAI's `detail`, Gemini's `media_resolution`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Detail {
    /// The provider decides.
    #[default]
    Auto,
    /// As few tokens as possible.
    Low,
    /// Gemini's medium; elsewhere as [`Self::High`].
    Medium,
    /// The provider's full rule.
    High,
    /// Without scaling down where the model has that; Gemini's `ULTRA_HIGH`.
    Original,
}

/// A word that is no detail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown image detail {0:?}; known are auto, low, medium, high, original")]
pub struct UnknownDetail(String);

impl FromStr for Detail {
    type Err = UnknownDetail;

    /// Reads OpenAI's words, and Gemini's with their prefix `MEDIA_RESOLUTION_`; case does not matter.
    fn from_str(word: &str) -> Result<Self, UnknownDetail> {
        // Cut, because the word comes from a request and goes into an error.
        let word: String = word.chars().take(64).collect();
        let plain = word.to_ascii_lowercase();
        match plain.strip_prefix("media_resolution_").unwrap_or(&plain) {
            "" | "auto" | "unspecified" => Ok(Self::Auto),
            "low" => Ok(Self::Low),
            "medium" => Ok(Self::Medium),
            "high" => Ok(Self::High),
            "original" | "ultra_high" => Ok(Self::Original),
            _ => Err(UnknownDetail(word)),
        }
    }
}

/// The tokens of one image; without dimensions, `high` is the most that the rule gives any image.
#[must_use]
pub fn image_tokens(rules: &MediaRules, size: Option<Dimensions>, detail: Detail) -> TokenCount {
    match rules.image {
        ImageRule::Tiles { base, tile } => tile_tokens(base.into(), tile.into(), size, detail),
        ImageRule::Patches {
            edge,
            limit,
            low,
            original,
            auto,
            thousandths,
            around,
        } => {
            let original_limit = original.unwrap_or(limit);
            let limit = match (detail, auto) {
                (Detail::Low, _) => low.unwrap_or(limit),
                (Detail::Original, _) | (Detail::Auto, AutoDetail::Original) => original_limit,
                _ => limit,
            };
            let squares = patch_count(edge, limit, size);
            let most = squares.scale_by(thousandths.into());
            // Providers change the factor more often than the squares.
            let low = squares.low.min(most.low);
            TokenCount::estimate(low, most.count, most.high.saturating_add(around.into()))
        }
        ImageRule::Crops {
            small,
            crop_low,
            crop_high,
            tokens,
            low,
        } => match detail {
            Detail::Low => TokenCount::estimate(low.into(), low.into(), low.into()),
            Detail::Medium => TokenCount::estimate(low.into(), tokens.into(), tokens.into()),
            _ => {
                let crops = crop_tokens(small, (crop_low, crop_high), tokens.into(), size);
                TokenCount::estimate(low.into(), crops.count, crops.high)
            }
        },
        ImageRule::Fixed {
            low,
            medium,
            high,
            original,
        } => {
            // The published numbers are what an image of usual shape takes.
            let about = |tokens: u32| {
                let tokens = u64::from(tokens);
                TokenCount::estimate(tokens / 2, tokens, tokens + tokens / 10)
            };
            match detail {
                Detail::Auto => TokenCount::estimate(low.into(), high.into(), about(high).high),
                Detail::Low => about(low),
                Detail::Medium => about(medium),
                Detail::High => about(high),
                Detail::Original => about(original),
            }
        }
        // A rule of a newer catalogue than this code: as careful as any known rule.
        _ => TokenCount::estimate(1, 5_000, 10_000),
    }
}

impl TokenCount {
    fn scale_by(self, thousandths: u64) -> Self {
        let scale = |squares: u64| squares.saturating_mul(thousandths).div_ceil(1000);
        Self::estimate(scale(self.low), scale(self.count), scale(self.high))
    }
}

fn tile_tokens(base: u64, tile: u64, size: Option<Dimensions>, detail: Detail) -> TokenCount {
    // 2,048 by 768 pixels are the most that is left after scaling: four by two squares.
    const MOST: u64 = 8;
    let of = |squares: u64| base.saturating_add(tile.saturating_mul(squares));
    if detail == Detail::Low {
        return TokenCount::estimate(base, base, base);
    }
    // With `auto` the provider may choose low detail, which is the base alone.
    let low = if detail == Detail::Auto { base } else { of(1) };
    let Some(size) = size else {
        return TokenCount::estimate(low, of(4), of(MOST));
    };
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let boxed = (2048.0 / width.max(height)).min(1.0);
    let short = 768.0 / (width.min(height) * boxed);
    let squares = |scale: f64| {
        let side = |pixels: f64| (pixels * scale / 512.0).ceil().max(1.0);
        (side(width) * side(height)) as u64
    };
    let count = squares(boxed * short.min(1.0)).min(MOST);
    // Some models scale small images up to the 768 pixels as well. Of one that is scaled down only the most that any image
    // takes is certain: 3,008 by 2,000 pixels are six squares by the rule, and were billed as more than seven.
    let high = match boxed * short < 1.0 {
        true => MOST,
        false => squares(boxed * short).clamp(count, MOST),
    };
    TokenCount::estimate(low, of(count), of(high))
}

fn patch_count(edge: u32, limit: PatchLimit, size: Option<Dimensions>) -> TokenCount {
    let most = u64::from(limit.patches);
    let Some(size) = size else {
        return TokenCount::estimate(1, most.min(1_500), most);
    };
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let longest = limit.longest.map_or(f64::INFINITY, f64::from);
    let scale = (longest / width.max(height)).min(1.0);
    let side = |pixels: f64| (pixels * scale / f64::from(edge.max(1))).ceil().max(1.0) as u64;
    let all = side(width).saturating_mul(side(height));
    // Scaling down keeps the shape, so a few squares less than the limit may be left.
    let low = if all > most { most * 9 / 10 } else { all };
    TokenCount::estimate(low, all.min(most), all.min(most))
}

fn crop_tokens(small: u32, crop: (u32, u32), tokens: u64, size: Option<Dimensions>) -> TokenCount {
    // A 4K image has 15 crops; without dimensions we count on one of 8K.
    const UNKNOWN: u64 = 64;
    // Bounds what a header can claim.
    const MOST: u64 = 256;
    let Some(size) = size else {
        return TokenCount::estimate(tokens, tokens * 4, tokens * UNKNOWN);
    };
    if size.width <= small && size.height <= small {
        return TokenCount::estimate(tokens, tokens, tokens);
    }
    let (crop_low, crop_high) = (crop.0.max(1), crop.1.max(crop.0).max(1));
    let unit = (size.width.min(size.height) / 3 * 2).clamp(crop_low, crop_high);
    let side = |pixels: u32| u64::from(pixels.div_ceil(unit));
    let crops = side(size.width)
        .saturating_mul(side(size.height))
        .clamp(1, MOST);
    TokenCount::estimate(tokens, tokens * crops, tokens * crops)
}
