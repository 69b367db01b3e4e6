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
    /// OpenAI: squares of `edge` pixels, scaled down to at most `patches` of them, times `thousandths / 1000`.
    Patches {
        /// Side of a square in pixels.
        edge: u32,
        /// The most squares.
        patches: u32,
        /// The most squares with detail `original`, where the model has that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_patches: Option<u32>,
        /// Tokens of a thousand squares.
        thousandths: u32,
    },
    /// Anthropic: fit the longer side into `edge`, then width times height over `pixels_per_token`, at most `tokens`.
    Area {
        /// Pixels that make a token.
        pixels_per_token: u32,
        /// The longest side in pixels.
        edge: u32,
        /// The most tokens.
        tokens: u32,
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
