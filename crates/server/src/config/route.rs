//! `[[routes]]`: which policy a request gets.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which policy a request gets. What is not said fits every request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
