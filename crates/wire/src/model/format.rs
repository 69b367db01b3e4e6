//! The formats we read and write, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The error for a name that no format has.
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
    /// The Responses API of OpenAI.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// The Messages API of Anthropic.
    Anthropic,
    /// Gemini `generateContent`, Vertex included.
    Gemini,
    /// Amazon Bedrock Converse.
    Bedrock,
    /// AI SDK UI messages.
    Ui,
    /// Contexture's own format: items as they are stored.
    Items,
}

impl Format {
    /// All formats, in the order of the variants.
    pub const ALL: [Self; 7] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
        Self::Ui,
        Self::Items,
    ];

    /// The formats that providers of models accept.
    pub const PROVIDERS: [Self; 5] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
    ];

    /// The format of hosts that are compatible with another provider: Chat Completions.
    pub const COMPATIBLE: Self = Self::OpenAiChat;

    /// The format that payloads are written in if none is named.
    pub const DEFAULT_TARGET: Self = Self::Anthropic;

    /// Returns the format of the API of a provider, named as in the catalogue; Chat Completions, which most hosts
    /// accept, for any other name.
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

    /// Returns the name that users write, which is also the key of the format's own fields in an item's `ctx:wire`.
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
