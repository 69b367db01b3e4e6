//! What a model call used, as reported.

use serde::{Deserialize, Serialize};

use crate::raw::Extra;

/// Tokens of one model call. `None` means the provider said nothing, which is not zero.
///
/// `input_tokens` includes what was read from and written to a cache, in every format: adapters of
/// formats that count them apart add them up, so that figures can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Everything the model read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Everything the model wrote, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input and output, as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Of the input: read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input: written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Of the output: spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The provider's own usage object, verbatim under its format's name.
    #[serde(skip)]
    pub extra: Extra,
}
