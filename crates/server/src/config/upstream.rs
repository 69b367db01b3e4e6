//! `[upstreams.<name>]`: a provider to pass requests on to.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// A provider to pass requests on to, under `/<name>/…`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// Whose protocol it speaks.
    pub format: UpstreamFormat,
    /// Where it is, up to what comes before the provider's own paths: `https://api.openai.com`.
    pub base_url: String,
    /// The variable of the environment that has its key. Without this and `key_file`, clients' own credentials
    /// are passed on.
    pub key_env: Option<String>,
    /// The file that has its key, on its first line.
    pub key_file: Option<PathBuf>,
    /// Whether the provider's own paths at the root (`/v1/messages`) go here. Default: if it is the only one of
    /// its format.
    #[serde(default)]
    pub default: bool,
    /// A field of the request's body that names the conversation: `prompt_cache_key`. Default: none; such fields
    /// only keep conversations apart.
    pub conversation_from: Option<String>,
}

/// Whose protocol an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamFormat {
    /// Chat Completions and Responses.
    OpenAi,
    /// Messages.
    Anthropic,
    /// `generateContent`.
    Gemini,
}

impl fmt::Display for UpstreamFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        })
    }
}
