//! What of a Chat Completions request belongs to the cached prefix.

use crate::model::prompt_cache::{CacheKeyRules, OutlineShape, PrefixSetting, RequestPart};
use crate::openai::shared::prompt_cache;

pub(super) const CACHE_KEY: CacheKeyRules = CacheKeyRules {
    settings: &[
        PrefixSetting::new(
            &["response_format"],
            RequestPart::Form,
            "text_format_changed",
        ),
        PrefixSetting::new(
            &["reasoning_effort"],
            RequestPart::Form,
            "reasoning_effort_changed",
        ),
        PrefixSetting::new(&["verbosity"], RequestPart::Form, "verbosity_changed"),
    ],
    ..prompt_cache::CACHE_KEY
};

pub(super) const OUTLINE: OutlineShape = OutlineShape {
    tools: &[&["tools"], &["functions"]],
    expected: "an array under `messages`",
    // There is no member for the system prompt.
    leading_system: true,
    text_history: None,
    text_block: None,
    beside: Some("tool_calls"),
};
