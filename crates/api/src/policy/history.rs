//! `window`, `clear`, `compact`: how much of a history is shown.

use std::collections::BTreeSet;

use contexture::compile::{Clear, ClearPolicy, HistoryPolicy, StandingRulesPolicy, Window};
use contexture::engine::{BackgroundSummary, CompactOptions, PrepareOptions, Strategy, Trigger};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::policy::{CostCondition, PolicyConfig};

/// How much of a history is sent at most: one of the two.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema,
)]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "{ keep_recent = N }, such as clear = { keep_recent = 3 }"
)]
pub struct ClearConfig {
    /// So many of the newest outputs stay. Default: 3.
    pub keep_recent: usize,
    /// Outputs of these tools stay; in a name `*` stands for any characters. Default: of none.
    #[schema(value_type = Vec<String>)]
    pub keep_tools: BTreeSet<String>,
    /// Whether outputs that are errors stay. Default: true.
    pub keep_errors: bool,
    /// Thoughts of so many of the newest turns stay. Default: 1.
    pub keep_thinking: u32,
    /// Outputs of fewer bytes stay. Default: 200.
    pub min_bytes: usize,
    /// Share of the window in per cent that a history has to take before anything is cleared. Default: 100.
    pub above_percent: u8,
    /// Whether it is cleared even if that costs more than it saves. Default: false; then only if it pays, or the history
    /// does not fit.
    pub always: bool,
}

impl Default for ClearConfig {
    fn default() -> Self {
        let ClearPolicy {
            trigger,
            keep_recent,
            min_bytes,
            keep_errors,
            keep_reasoning,
            ..
        } = ClearPolicy::default();
        Self {
            keep_recent,
            keep_tools: BTreeSet::new(),
            keep_errors,
            keep_thinking: keep_reasoning.unwrap_or(1),
            min_bytes,
            above_percent: trigger,
            always: false,
        }
    }
}

impl ClearConfig {
    fn clear_policy(&self) -> ClearPolicy {
        ClearPolicy {
            trigger: self.above_percent,
            keep_recent: self.keep_recent,
            min_bytes: self.min_bytes,
            keep_tools: self.keep_tools.clone(),
            keep_errors: self.keep_errors,
            keep_reasoning: Some(self.keep_thinking),
            always: self.always,
            ..ClearPolicy::default()
        }
    }
}

/// What stands for the older part of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "compact = \"manifest\" or \"summary\""
)]
pub enum CompactConfig {
    /// What its users said, the calls that changed something, open tasks, errors, files, identifiers and numbers; no model is asked.
    Manifest,
    /// The same behind a summary that a model writes in the background, before it is needed. Only the proxy asks one; elsewhere, and
    /// where none is ready, the manifest stands alone.
    Summary,
}

/// Whose key a summary is asked for with.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema,
)]
#[serde(
    rename_all = "lowercase",
    expecting = "summary_credentials = \"configured\" or \"client\""
)]
pub enum SummaryCredentials {
    /// The key that is configured for the upstream; without one no summary is asked for.
    #[default]
    Configured,
    /// Also the client's own, for the summary that its request gives rise to. It stays in memory until the answer has come.
    Client,
}

impl PolicyConfig {
    /// Returns how much of a history it shows, as the compiler takes it.
    #[must_use]
    pub fn history_policy(&self) -> HistoryPolicy {
        HistoryPolicy {
            window: match self.window {
                Some(WindowConfig {
                    turns: Some(turns), ..
                }) => Window::Turns(turns),
                Some(WindowConfig {
                    tokens: Some(tokens),
                    ..
                }) => Window::Tokens(tokens),
                _ => Window::Whole,
            },
            clear: self
                .clear
                .as_ref()
                .map_or(Clear::Never, |clear| Clear::By(clear.clear_policy())),
            preview: self
                .preview
                .as_ref()
                .map(|preview| preview.preview_policy()),
            standing_rules: match self.rules {
                true => StandingRulesPolicy::Keep,
                false => StandingRulesPolicy::Off,
            },
            ..HistoryPolicy::default()
        }
    }

    /// Returns how the older part of a history is compacted where it does not fit; `None`: it is left out. `summary` is who
    /// writes summaries, where the policy wants them and its caller can ask somebody.
    #[must_use]
    pub fn prepare_options(&self, summary: Option<BackgroundSummary>) -> Option<PrepareOptions> {
        let compact = self.compact?;
        let summary = summary.filter(|_| compact == CompactConfig::Summary);
        let summary = summary.map(|mut summary| {
            // A client's own request would have cost nothing more.
            summary.must_pay = self.cost_condition == CostCondition::Strict;
            Strategy::Summary(summary)
        });
        Some(PrepareOptions {
            trigger: Trigger::Overflow,
            strategies: summary.into_iter().chain([Strategy::Manifest]).collect(),
            compact: CompactOptions {
                tool_hints: self.tools.tool_hints(),
                ..CompactOptions::default()
            },
            ..PrepareOptions::default()
        })
    }
}
