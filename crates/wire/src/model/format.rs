//! The formats we read and write, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name that is no format's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown format {name:?}: expected openai-chat, openai-responses, anthropic, gemini, bedrock, ui or items"
)]
pub struct UnknownFormat {
    /// The name as given.
    pub name: String,
}

/// A format of conversations on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// OpenAI Chat Completions, and the many hosts compatible with it.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`, Vertex included.
    Gemini,
    /// Amazon Bedrock Converse.
    Bedrock,
    /// AI SDK UI messages.
    Ui,
    /// Our own: items as they are stored.
    Items,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
        Self::Ui,
        Self::Items,
    ];

    /// The formats a model's provider accepts.
    pub const PROVIDERS: [Self; 5] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
    ];

    /// The format that hosts speak which are compatible with other providers.
    pub const COMPATIBLE: Self = Self::OpenAiChat;

    /// The format that payloads are written in where nobody names another.
    pub const DEFAULT_TARGET: Self = Self::Anthropic;

    /// The format in which a provider, by its name in the catalogue, speaks to its own models; OpenAI's chat, which most
    /// hosts understand, for the others.
    #[must_use]
    pub fn of_provider(provider: &str) -> Self {
        match provider {
            "anthropic" => Self::Anthropic,
            "google" => Self::Gemini,
            "amazon-bedrock" => Self::Bedrock,
            "openai" => Self::OpenAiResponses,
            _ => Self::OpenAiChat,
        }
    }

    /// The name users write, also the key of the format's own fields in an item's `ctx:wire`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Ui => "ui",
            Self::Items => "items",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| UnknownFormat {
                name: name.to_owned(),
            })
    }
}
