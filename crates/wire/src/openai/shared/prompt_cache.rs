//! What OpenAI bills around texts and what its prompt cache compares, in both formats.
//!
//! Reasons are the words of its diagnostics
//! (<https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics>, read on 2026-11-21).

use crate::model::overhead::Overhead;
use crate::model::prompt_cache::{CacheKeyRules, ChangeReasons, FreeMembers, RoutingKey};
use crate::openai::shared::PROVIDER;

/// The member by which requests with one prefix are brought to one machine.
const ROUTING_KEY: &str = "prompt_cache_key";

pub(in crate::openai) const OVERHEAD: Overhead = Overhead {
    request: (0, 4),
    system: (3, 7),
    message: (3, 4),
    call: (0, 8),
    output: (0, 5),
    tool: (0, 12),
    tools: (0, 240),
    tool_text: 40,
    nested_tool_text: 100,
    reasoning: (0, 12),
    schema: (0, 60),
};

/// What the cache compares, but for the settings inside the prefix, which each format spells in its own way.
pub(in crate::openai) const CACHE_KEY: CacheKeyRules = CacheKeyRules {
    settings: &[],
    scopes: &[
        (ROUTING_KEY, "prompt_cache_key_changed"),
        ("service_tier", "service_tier_changed"),
    ],
    reasons: ChangeReasons {
        system: "input_changed",
        messages: "input_changed",
        compaction: Some((r#""type":"compaction""#, "context_compacted")),
    },
    explicit_markers: false,
    // Others offer the same formats, but whether they accept the member is not known, and an unknown one may be
    // refused.
    routing_key: Some(RoutingKey {
        member: ROUTING_KEY,
        provider: PROVIDER,
    }),
    cached_content: None,
    free: FreeMembers::NONE,
};

/// The members of a stream, in both formats.
pub(in crate::openai) const NOT_STREAMED: &[(&str, &str)] =
    &[("stream", "false"), ("stream_options", "null")];
