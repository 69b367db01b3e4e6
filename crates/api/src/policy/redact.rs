//! `redact`: which secrets are taken out of requests.

use std::collections::BTreeSet;

use contexture::engine::{SecretPattern, Secrets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The secrets that are removed from requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as redact = { kinds = [\"api_key\"] }"
)]
pub struct RedactConfig {
    /// Kinds of secrets to remove, and no others. Default: all.
    #[schema(value_type = Option<Vec<String>>)]
    pub kinds: Option<BTreeSet<SecretKind>>,
}

/// A kind of secret.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// API keys with the prefix `sk-`: those of OpenAI and Anthropic, and others of that shape.
    ApiKey,
    /// AWS key ids with the prefix `AKIA` or `ASIA`.
    AwsKeyId,
    /// GitHub tokens: `ghp_…`, `github_pat_…` and their like.
    GithubToken,
    /// Google API keys with the prefix `AIza`.
    GoogleApiKey,
    /// Private keys in PEM format.
    PrivateKey,
    /// Slack tokens: `xoxb-…` and their like.
    SlackToken,
}

impl SecretKind {
    /// Returns the name that replaces such a secret, as in `[redacted: API key]`.
    const fn pattern_name(self) -> &'static str {
        match self {
            Self::ApiKey => "API key",
            Self::AwsKeyId => "AWS key id",
            Self::GithubToken => "GitHub token",
            Self::GoogleApiKey => "Google API key",
            Self::PrivateKey => "private key",
            Self::SlackToken => "Slack token",
        }
    }
}

impl RedactConfig {
    /// Returns the patterns of the configured kinds.
    pub fn secret_patterns(&self) -> Vec<SecretPattern> {
        let mut patterns = Secrets::common().patterns;
        if let Some(kinds) = &self.kinds {
            let is_meant = |pattern: &SecretPattern| {
                let mut kinds = kinds.iter();
                kinds.any(|kind| kind.pattern_name() == pattern.name())
            };
            patterns.retain(is_meant);
        }
        patterns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_of_a_kind_and_every_kind_has_one() {
        use SecretKind::{ApiKey, AwsKeyId, GithubToken, GoogleApiKey, PrivateKey, SlackToken};
        let all = [
            ApiKey,
            AwsKeyId,
            GithubToken,
            GoogleApiKey,
            PrivateKey,
            SlackToken,
        ];
        let of =
            |kinds: BTreeSet<SecretKind>| RedactConfig { kinds: Some(kinds) }.secret_patterns();
        assert_eq!(of(all.into()), RedactConfig::default().secret_patterns());
        for kind in all {
            assert!(!of([kind].into()).is_empty(), "{kind:?}");
        }
    }
}
