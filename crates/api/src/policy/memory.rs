//! `memory`: notes that are said to the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::policy::toggle::words_schema;

/// The notes that the model is shown, and their place in the request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, ToSchema,
)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as memory = { of = \"owner\" }"
)]
pub struct MemoryConfig {
    /// Scope of the notes. Default: `user`.
    #[schema(schema_with = scope_schema)]
    pub of: MemoryScope,
    /// Place of the notes in the request. Default: `system`.
    #[schema(schema_with = placement_schema)]
    pub placement: MemoryPlacement,
    /// Maximum number of tokens of the notes; the least important are left out first. Default: no limit.
    pub budget_tokens: Option<u64>,
    /// Whether the model may write notes itself, with tools that the proxy answers. Default: false.
    pub tools: bool,
}

/// The scope of the notes that the model is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase", expecting = "of = \"user\" or \"owner\"")]
#[schemars(rename = "MemoryOf")]
pub enum MemoryScope {
    /// Notes of the end user that the conversation is for, its resource. Without one: the owner's notes in the proxy, the
    /// conversation's own elsewhere.
    #[default]
    User,
    /// Notes of the owner.
    Owner,
}

/// The place of notes in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "placement = \"system\" or \"tail\""
)]
pub enum MemoryPlacement {
    /// In the system prompt: when they change, the provider's cache is written anew.
    #[default]
    System,
    /// After the history: they are sent anew each time, and change nothing before them.
    Tail,
}

fn scope_schema() -> utoipa::openapi::Schema {
    words_schema(&["user", "owner"])
}

fn placement_schema() -> utoipa::openapi::Schema {
    words_schema(&["system", "tail"])
}
