//! What of a Responses request belongs to the cached prefix.

use crate::model::prompt_cache::{CacheKeyRules, OutlineShape, PrefixSetting, RequestPart};
use crate::openai::shared::prompt_cache;

pub(super) const CACHE_KEY: CacheKeyRules = CacheKeyRules {
    settings: &[
        PrefixSetting::new(
            &["text", "format"],
            RequestPart::Form,
            "text_format_changed",
        ),
        PrefixSetting::new(
            &["reasoning", "effort"],
            RequestPart::Form,
            "reasoning_effort_changed",
        ),
        PrefixSetting::new(
            &["text", "verbosity"],
            RequestPart::Form,
            "verbosity_changed",
        ),
    ],
    ..prompt_cache::CACHE_KEY
};

pub(super) const OUTLINE: OutlineShape = OutlineShape {
    tools: &[&["tools"]],
    expected: "an array or a text under `input`",
    leading_system: false,
    text_history: Some("user"),
    text_block: None,
    beside: None,
};
