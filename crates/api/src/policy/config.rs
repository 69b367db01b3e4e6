//! The policy as a whole.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::policy::preview::{preview_json_schema, preview_schema};
use crate::policy::toggle::toggle_schema;
use crate::policy::{
    ClearConfig, CompactConfig, GuardrailsConfig, MemoryConfig, PreviewConfig, RedactConfig,
    StateConfig, SummaryCredentials, Toggle, ToolsConfig, WindowConfig,
};

/// What may be changed in a request. An empty one changes nothing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema, ToSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as [policies.frugal]"
)]
#[schema(as = Policy)]
pub struct PolicyConfig {
    /// How much of the history is sent at most, newest first. Default: all.
    pub window: Option<WindowConfig>,
    /// Old outputs of tools become placeholders. Default: they stay.
    pub clear: Option<ClearConfig>,
    /// Outputs of more than so many characters are shown by their beginning, their end and their errors; at
    /// least 600. A table says more. Default: whole.
    #[schema(schema_with = preview_schema)]
    #[schemars(schema_with = "preview_json_schema")]
    pub preview: Option<PreviewConfig>,
    /// What stands for the older part of a history that does not fit. Default: nothing; it is left out.
    pub compact: Option<CompactConfig>,
    /// Another model that may write summaries: it is sent the part that is summed up, and the cheaper of the two is asked. Default:
    /// only the conversation's own model is.
    pub summary_model: Option<String>,
    /// The upstream that this model is at. Default: that of the request.
    pub summary_upstream: Option<String>,
    /// Whose key summaries are asked for with. Default: `configured`.
    pub summary_credentials: SummaryCredentials,
    /// Whether rules that the user stated are quoted at the start of the history once their messages are out of view. Default: true.
    pub rules: bool,
    /// Which tools may be offered. Default: all. Holds whatever else fails, and whatever other policy the
    /// client asks for.
    pub tools: ToolsConfig,
    /// Whether secrets are taken out of what is sent and stored: keys that look like keys. A table says which
    /// kinds. Default: they stay. Holds whatever else fails, and whatever other policy the client asks for.
    #[schema(schema_with = toggle_schema::<RedactConfig>)]
    pub redact: Toggle<RedactConfig>,
    /// Whether notes are said to the model. A table says whose and where. Default: none are.
    #[schema(schema_with = toggle_schema::<MemoryConfig>)]
    pub memory: Toggle<MemoryConfig>,
    /// Folders of skills, each as `FOLDER/NAME/SKILL.md`: they are listed to the model, which reads one by a tool
    /// that is answered here. Of two of one name that of the earlier folder counts. Default: none.
    #[schema(value_type = Vec<String>)]
    pub skills: Vec<PathBuf>,
    /// What is so now, in any shape: it is said behind the history with every call. Default: nothing.
    pub state: Option<StateConfig>,
    /// How the model is to answer. Default: as it likes.
    pub guardrails: GuardrailsConfig,
    /// Whether marks are set for the provider's cache, where it has any. Default: only the client's are.
    pub cache_marks: bool,
    /// A smaller window than the model's, in tokens, the answer included; at least 1,000. Default: the model's.
    pub limit_tokens: Option<u64>,
    /// After so many milliseconds the proxy sends a request as it came. Default: 2,000.
    pub ingest_timeout_ms: u64,
    /// What the proxy needs for a change to be made. Default: `strict`.
    #[serde(alias = "pays")]
    pub cost_condition: CostCondition,
}

/// What a change needs to be made, where the request would fit without.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema,
)]
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
            summary_model: None,
            summary_upstream: None,
            summary_credentials: SummaryCredentials::default(),
            rules: true,
            tools: ToolsConfig::default(),
            redact: Toggle::Off,
            memory: Toggle::Off,
            skills: Vec::new(),
            state: None,
            guardrails: GuardrailsConfig::default(),
            cache_marks: false,
            limit_tokens: None,
            ingest_timeout_ms: 2_000,
            cost_condition: CostCondition::default(),
        }
    }
}

impl PolicyConfig {
    /// Returns whether it may show less of a history that fits.
    #[must_use]
    pub(crate) const fn can_shorten_history(&self) -> bool {
        self.window.is_some() || self.clear.is_some() || self.preview.is_some()
    }

    /// Returns whether it may change a request that fits, beside what it says itself.
    #[must_use]
    pub const fn can_change_fitting_request(&self) -> bool {
        self.can_shorten_history() || self.tools.select.is_some() || self.cache_marks
    }

    /// Returns whether it may change what is said.
    #[must_use]
    pub fn can_rewrite(&self) -> bool {
        self.can_change_fitting_request()
            || self.compact.is_some()
            || self.limit_tokens.is_some()
            || self.has_words()
    }

    /// Returns whether it says something itself: notes, skills, state, guardrails.
    #[must_use]
    pub(crate) fn has_words(&self) -> bool {
        self.memory.as_option().is_some()
            || !self.skills.is_empty()
            || self.state.is_some()
            || !self.guardrails.is_empty()
    }
}
