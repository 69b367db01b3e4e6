//! How long a marked prefix is kept.

use serde::{Deserialize, Serialize};

/// How long a provider keeps a prefix that a request marked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CacheTtl {
    /// The provider's usual time: five minutes at Anthropic, thirty at OpenAI.
    #[default]
    Usual,
    /// The longer one: an hour at Anthropic, twelve at OpenAI.
    Long,
}
