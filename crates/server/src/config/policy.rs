//! `[policies.<name>]`: what may be changed in a request.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::memory::MemoryConfig;
use crate::config::redact::RedactConfig;
use crate::config::values::Toggle;

/// What may be changed in a request. An empty one changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as [policies.frugal]"
)]
pub struct PolicyConfig {
    /// How much of the history is sent at most, newest first. Default: all.
    pub window: Option<WindowConfig>,
    /// Old outputs of tools become placeholders. Default: they stay.
    pub clear: Option<ClearConfig>,
    /// Outputs of more than so many characters are shown by their beginning, their end and their errors; at
    /// least 600. Default: whole.
    pub preview: Option<u64>,
    /// What stands for the older part of a history that does not fit. Default: nothing; it is left out.
    pub compact: Option<CompactConfig>,
    /// Which tools may be offered. Default: all. Holds whatever else fails, and whatever other policy the
    /// client asks for.
    pub tools: ToolsConfig,
    /// Whether secrets are taken out of what is sent and stored: keys that look like keys. A table says which
    /// kinds. Default: they stay. Holds whatever else fails, and whatever other policy the client asks for.
    pub redact: Toggle<RedactConfig>,
    /// Whether notes are said to the model. A table says whose and where. Default: none are.
    pub memory: Toggle<MemoryConfig>,
    /// Folders of skills, each as `FOLDER/NAME/SKILL.md`: they are listed to the model, which reads one by a tool
    /// that is answered here. Of two of one name that of the earlier folder counts. Default: none.
    pub skills: Vec<PathBuf>,
    /// Whether marks are set for the provider's cache, where it has any. Default: only the client's are.
    pub cache_marks: bool,
    /// A smaller window than the model's, in tokens, the answer included; at least 1,000. Default: the model's.
    pub limit_tokens: Option<u64>,
    /// After so many milliseconds the request goes as it came. Default: 2,000.
    pub ingest_timeout_ms: u64,
    /// What a change needs to be made. Default: `strict`.
    #[serde(alias = "pays")]
    pub cost_condition: CostCondition,
}

/// How much of a history is sent at most: one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "{ turns = N } or { tokens = N }, such as window = { turns = 20 }"
)]
pub struct WindowConfig {
    /// So many turns: what a user says, and all that follows.
    pub turns: Option<u32>,
    /// So many tokens.
    pub tokens: Option<u64>,
}

/// Which old outputs become placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "{ keep_recent = N }, such as clear = { keep_recent = 3 }"
)]
pub struct ClearConfig {
    /// So many of the newest outputs stay. Default: 3.
    #[serde(default = "keep_recent")]
    pub keep_recent: usize,
}

/// What stands for the older part of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase", expecting = "compact = \"manifest\"")]
pub enum CompactConfig {
    /// Its files, commands, errors, identifiers and numbers; no model is asked.
    Manifest,
}

/// Which tools may be offered, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as tools = { deny = [\"shell\"] }"
)]
pub struct ToolsConfig {
    /// These and no others. Default: all.
    pub allow: Option<BTreeSet<String>>,
    /// None of these.
    pub deny: BTreeSet<String>,
    /// Of more functions than this only so many, those that fit best what the user says first; they stay for the
    /// whole conversation. Those that were called stay too, and providers' own tools. Default: all.
    pub select: Option<usize>,
}

/// What a change needs to be made, where the request would fit without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "cost_condition = \"strict\" or \"fits\""
)]
#[schemars(rename = "Pays")]
pub enum CostCondition {
    /// It costs less, over this call and four like it, than what the client sent, and now no more than what was saved before.
    #[default]
    Strict,
    /// Nothing: it is made, whatever it costs.
    Fits,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            window: None,
            clear: None,
            preview: None,
            compact: None,
            tools: ToolsConfig::default(),
            redact: Toggle::Off,
            memory: Toggle::Off,
            skills: Vec::new(),
            cache_marks: false,
            limit_tokens: None,
            ingest_timeout_ms: 2_000,
            cost_condition: CostCondition::default(),
        }
    }
}

impl PolicyConfig {
    /// Whether it may show less of a history that fits.
    #[must_use]
    pub(crate) const fn can_shorten_history(&self) -> bool {
        self.window.is_some() || self.clear.is_some() || self.preview.is_some()
    }

    /// Whether it may change a request that fits, beside what it says itself.
    #[must_use]
    pub(crate) const fn can_change_fitting_request(&self) -> bool {
        self.can_shorten_history() || self.tools.select.is_some() || self.cache_marks
    }

    /// Whether it may change what is said.
    #[must_use]
    pub(crate) const fn can_rewrite(&self) -> bool {
        self.can_change_fitting_request()
            || self.compact.is_some()
            || self.limit_tokens.is_some()
            || self.memory.as_option().is_some()
            || !self.skills.is_empty()
    }
}

impl ToolsConfig {
    /// Whether a tool of this name may be offered.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.allows_spelled(&[name])
    }

    /// Whether a tool with a name in these spellings may be offered: none of them may be denied, and one has to be allowed.
    pub(crate) fn allows_spelled(&self, names: &[impl AsRef<str>]) -> bool {
        let has = |set: &BTreeSet<String>| names.iter().any(|name| set.contains(name.as_ref()));
        self.allow.as_ref().is_none_or(has) && !has(&self.deny)
    }

    /// What is left where another's word holds as well. How many are selected is still its own word.
    #[must_use]
    pub(crate) fn intersect_with(&self, other: &Self) -> Self {
        let allow = match (&self.allow, &other.allow) {
            (Some(own), Some(other)) => Some(own & other),
            // Without a list everything is allowed, so the other's list decides.
            (own, other) => own.as_ref().or(other.as_ref()).cloned(),
        };
        Self {
            allow,
            deny: &self.deny | &other.deny,
            select: self.select,
        }
    }

    /// Whether every tool may be offered.
    #[must_use]
    pub(crate) fn allows_all(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }
}

const fn keep_recent() -> usize {
    3
}

/// Which policy a request gets. What is not said fits every request.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with a policy, such as [[routes]] policy = \"frugal\""
)]
pub struct RouteConfig {
    /// The upstream's name.
    pub upstream: Option<String>,
    /// The model's name; `*` stands for any characters.
    pub model: Option<String>,
    /// The name of the caller's key.
    pub key: Option<String>,
    /// The policy's name.
    pub policy: String,
}
