//! `[upstreams.<name>]`: a provider to pass requests on to.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;

use contexture::Format;
use contexture::wire::HttpProfile;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, Error as _, VariantAccess as _, Visitor};

/// A provider to pass requests on to, under `/<name>/…`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as [upstreams.groq] with format and base_url"
)]
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
    /// What it does with a request that is longer than the model can hold. Default: `refuses` for a provider's own host,
    /// `unknown` for others. Where it refuses, a policy fills the window by the likely count of tokens, and sends a request
    /// that was refused as too long once more, shortened.
    pub overflow: Option<UpstreamOverflow>,
}

/// What a host does with a request that is longer than the model can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamOverflow {
    /// It answers with an error that says so.
    Refuses,
    /// Nothing is known: it may cut such a request without a word.
    Unknown,
}

/// Whose protocol an upstream speaks: one of the words that the formats' specifications have for their hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpstreamFormat(&'static str);

/// All words, each once, in the order of the formats.
static WORDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut words = Vec::new();
    for profile in Format::PROVIDERS
        .iter()
        .filter_map(|format| format.spec().http())
    {
        // Several formats are spoken by the same hosts.
        if !words.contains(&profile.upstream) {
            words.push(profile.upstream);
        }
    }
    words
});

impl UpstreamFormat {
    /// Returns all protocols.
    pub fn all() -> impl Iterator<Item = Self> {
        WORDS.iter().copied().map(Self)
    }

    /// Returns the protocol of this word.
    #[must_use]
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::all().find(|format| format.0 == word)
    }

    /// Returns the word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns the formats that such an upstream accepts.
    pub fn formats(self) -> impl Iterator<Item = Format> {
        let is_spoken = move |format: &Format| {
            let profile = format.spec().http();
            profile.is_some_and(|profile| profile.upstream == self.0)
        };
        Format::PROVIDERS.into_iter().filter(is_spoken)
    }

    /// Returns how such an upstream is reached: the addresses and keys of all its formats are equal.
    #[must_use]
    pub fn http_profile(self) -> Option<&'static HttpProfile> {
        self.formats().next()?.spec().http()
    }
}

impl fmt::Display for UpstreamFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de> Deserialize<'de> for UpstreamFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("UpstreamFormat", &WORDS, WordVisitor)
    }
}

struct WordVisitor;

impl<'de> Visitor<'de> for WordVisitor {
    type Value = UpstreamFormat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", WORDS.join(", "))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Self::Value, A::Error> {
        let (word, rest) = data.variant::<String>()?;
        rest.unit_variant()?;
        UpstreamFormat::from_word(&word).ok_or_else(|| A::Error::unknown_variant(&word, &WORDS))
    }
}

impl JsonSchema for UpstreamFormat {
    fn schema_name() -> Cow<'static, str> {
        "UpstreamFormat".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let words = Self::all().map(|format| {
            let protocols = format
                .http_profile()
                .map_or("", |profile| profile.protocols);
            json_schema!({
                "description": format!("{protocols}."),
                "type": "string",
                "const": format.0,
            })
        });
        let words: Vec<Schema> = words.collect();
        json_schema!({ "description": "Whose protocol an upstream speaks.", "oneOf": words })
    }
}
