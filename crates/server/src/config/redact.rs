//! `redact`: which secrets are taken out of requests.

use std::collections::BTreeSet;

use contexture::engine::{SecretPattern, Secrets};
use schemars::JsonSchema;
use serde::Deserialize;

/// Which secrets are taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedactConfig {
    /// These kinds and no others. Default: all.
    pub kinds: Option<BTreeSet<SecretKind>>,
}

/// A kind of secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// `sk-…`: OpenAI's, Anthropic's and those shaped like them.
    ApiKey,
    /// `AKIA…` and `ASIA…`.
    AwsKeyId,
    /// `ghp_…`, `github_pat_…` and their like.
    GithubToken,
    /// `AIza…`.
    GoogleApiKey,
    /// In PEM.
    PrivateKey,
    /// `xoxb-…` and its like.
    SlackToken,
}

impl SecretKind {
    /// What stands in the place of one: `[redacted: API key]`.
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
    /// What its secrets look like.
    pub(crate) fn secret_patterns(&self) -> Vec<SecretPattern> {
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
