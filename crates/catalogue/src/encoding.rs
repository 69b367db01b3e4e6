//! The token encodings that models use, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a model cuts text into tokens.
///
/// Only the name: which encodings can be counted exactly is the business of whoever counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Encoding {
    /// OpenAI from GPT-4o on, and the open-weight gpt-oss.
    #[serde(rename = "o200k_base")]
    O200kBase,
    /// OpenAI's GPT-4 and GPT-3.5.
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
    /// Anthropic before Claude Opus 4.7; not public.
    #[serde(rename = "claude-v1")]
    ClaudeV1,
    /// Anthropic from Claude Opus 4.7 on, with about 30 % more tokens for the same text; not public.
    #[serde(rename = "claude-v2")]
    ClaudeV2,
    /// Gemma 3, and Gemini 2 to 3.0.
    #[serde(rename = "gemma3")]
    Gemma3,
    /// Gemma 4, and Gemini from 3.1 on.
    #[serde(rename = "gemma4")]
    Gemma4,
    /// An encoding that is not known: it is estimated within wide bounds.
    #[serde(rename = "other")]
    Other,
}

/// A name that is no encoding's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding {name:?}; known are {}", Encoding::NAMES.join(", "))]
pub struct UnknownEncoding {
    /// The name as it was given, cut to 200 characters.
    pub name: String,
}

impl Encoding {
    /// Every encoding, in the order of [`Self::NAMES`].
    pub const ALL: [Self; 7] = [
        Self::O200kBase,
        Self::Cl100kBase,
        Self::ClaudeV1,
        Self::ClaudeV2,
        Self::Gemma3,
        Self::Gemma4,
        Self::Other,
    ];

    /// The names that parse, besides the short forms `o200k`, `cl100k`, `claude` (the newest) and `gemini` (the
    /// newest).
    pub const NAMES: [&'static str; 7] = [
        "o200k_base",
        "cl100k_base",
        "claude-v1",
        "claude-v2",
        "gemma3",
        "gemma4",
        "other",
    ];

    /// The encoding's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::ClaudeV1 => "claude-v1",
            Self::ClaudeV2 => "claude-v2",
            Self::Gemma3 => "gemma3",
            Self::Gemma4 => "gemma4",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "o200k" => return Ok(Self::O200kBase),
            "cl100k" => return Ok(Self::Cl100kBase),
            "claude" => return Ok(Self::ClaudeV2),
            "gemini" => return Ok(Self::Gemma4),
            _ => {}
        }
        // Short forms are what people type; names of data files come from the one list.
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.name() == name)
            .ok_or_else(|| UnknownEncoding {
                name: name.chars().take(200).collect(),
            })
    }
}
