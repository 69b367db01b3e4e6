//! `[policies.<name>]`: what may be changed in a request.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// What may be changed in a request. An empty one changes nothing.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PolicyConfig {
    /// As it stands in the file.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub table: toml::Table,
}
