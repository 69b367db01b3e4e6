//! What Anthropic bills around texts, and what its prompt cache compares.
//!
//! The choice of a tool, thinking and the form of the answer decide whether messages are read; tools and system prompt are
//! not touched ("What invalidates the cache",
//! <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>). Reasons are the words of its diagnostics
//! (<https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics>). Both read on 2026-11-21.

use contexture_ir::Usage;
use serde::Deserialize;

use super::spec::FORMAT;
use crate::model::overhead::Overhead;
use crate::model::prompt_cache::{
    CacheKeyRules, FreeMembers, OutlineShape, PrefixSetting, RequestPart,
};

pub(super) const OVERHEAD: Overhead = Overhead {
    request: (3, 3),
    system: (0, 4),
    message: (2, 5),
    call: (10, 45),
    output: (8, 30),
    tool: (0, 14),
    tools: (150, 804),
    tool_text: 80,
    nested_tool_text: 100,
    reasoning: (0, 40),
    schema: (0, 200),
};

pub(super) const CACHE_KEY: CacheKeyRules = CacheKeyRules {
    settings: &[
        PrefixSetting::new(&["tool_choice"], RequestPart::Settings, "messages_changed"),
        PrefixSetting::new(&["thinking"], RequestPart::Settings, "messages_changed"),
        PrefixSetting::new(
            &["output_config"],
            RequestPart::Settings,
            "messages_changed",
        ),
    ],
    explicit_markers: true,
    // The page lists what invalidates the cache; neither of the two is there.
    free: FreeMembers {
        not_streamed: &[("stream", "false")],
        output_limit: &["max_tokens"],
        stored: None,
    },
    ..CacheKeyRules::NONE
};

pub(super) const OUTLINE: OutlineShape = OutlineShape {
    expected: "an array under `messages`",
    leading_system: false,
    text_history: None,
    // A text and an array with one text block are treated alike.
    text_block: Some("text"),
    beside: None,
};

/// Of what a response says of writes to the cache; see the documentation of prompt caching, "1-hour cache duration".
#[derive(Deserialize)]
struct CacheWriteDetails {
    ephemeral_1h_input_tokens: Option<u64>,
}

/// Returns how many tokens were written to the cache for an hour, as reported.
pub(super) fn long_cache_write(usage: &Usage) -> Option<u64> {
    let reported = usage.extra.wire_fields(FORMAT);
    let details: CacheWriteDetails =
        serde_json::from_str(reported.get("cache_creation")?.get()).ok()?;
    details.ephemeral_1h_input_tokens
}
