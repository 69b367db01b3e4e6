//! `memory`: notes that are said to the model.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which notes are said to the model, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Whose. Default: `user`.
    pub of: MemoryScope,
    /// Where they stand. Default: `system`.
    pub placement: MemoryPlacement,
    /// How many tokens they may take; what is least important is left out first. Default: no limit.
    pub budget_tokens: Option<u64>,
    /// Whether the model may keep notes itself, by tools that are answered here. Default: false.
    pub tools: bool,
}

/// Whose notes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MemoryOf")]
pub enum MemoryScope {
    /// The end user's that the request is for; the owner's where it is for none.
    #[default]
    User,
    /// The owner's.
    Owner,
}

/// Where notes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPlacement {
    /// In the system prompt: where they change, the provider's cache is written anew.
    #[default]
    System,
    /// Behind the history: they are sent anew each time, and change nothing before them.
    Tail,
}
