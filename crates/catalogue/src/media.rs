//! How many tokens media take, as data: the providers' published rules.
//!
//! Applying a rule to an image is the tokens crate's business.

use serde::{Deserialize, Serialize};

/// The rules of one model for images, pages and sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaRules {
    /// How an image counts.
    pub image: ImageRule,
    /// One page of a PDF file, in tokens.
    pub page: Bounds,
    /// One second of sound, in tokens; absent if the model hears nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_second: Option<Bounds>,
}

/// A number of tokens that is only known within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// At least this many.
    pub low: u32,
    /// Usually this many.
    pub count: u32,
    /// At most this many.
    pub high: u32,
}

/// How large an image may be before it is scaled down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchLimit {
    /// The most squares.
    pub patches: u32,
    /// The longest side in pixels; absent if there is no limit but the squares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<u32>,
}

/// What a model does when no detail is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoDetail {
    /// As with detail high.
    #[default]
    High,
    /// As with detail original.
    Original,
}

/// How the tokens of an image follow from its width and height in pixels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ImageRule {
    /// OpenAI: fit into 2,048 by 2,048 pixels, then the shorter side into 768; `base` and, unless the detail is low,
    /// `tile` for each 512-pixel square.
    Tiles {
        /// Tokens of any image.
        base: u32,
        /// Tokens of each square.
        tile: u32,
    },
    /// OpenAI and Anthropic: squares of `edge` pixels that cover the image, scaled down first to the limit, times
    /// `thousandths / 1000`.
    Patches {
        /// Side of a square in pixels.
        edge: u32,
        /// The limit with detail high, and where detail makes no difference.
        limit: PatchLimit,
        /// The limit with detail low, where that is one of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<PatchLimit>,
        /// The limit with detail original, where the model has that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original: Option<PatchLimit>,
        /// What stands for no detail: the limit, or the original's.
        #[serde(default)]
        auto: AutoDetail,
        /// Tokens of a thousand squares.
        thousandths: u32,
        /// The most tokens around the squares: delimiters, and what the provider says about scaling.
        #[serde(default)]
        around: u32,
    },
    /// Gemini 2: `tokens` if both sides are at most `small`; else for each crop of a side between `crop_low` and
    /// `crop_high`, two thirds of the shorter side if possible.
    Crops {
        /// Largest side of a small image in pixels.
        small: u32,
        /// Smallest side of a crop.
        crop_low: u32,
        /// Largest side of a crop.
        crop_high: u32,
        /// Tokens of each crop.
        tokens: u32,
        /// Tokens of an image with detail low.
        low: u32,
    },
    /// Gemini 3: a number that only depends on the detail asked for; `high` if nothing is asked.
    Fixed {
        /// With detail low.
        low: u32,
        /// With detail medium.
        medium: u32,
        /// With detail high.
        high: u32,
        /// With the highest detail.
        original: u32,
    },
}
