//! What Gemini bills around texts, and what its prompt cache compares.
//!
//! Nothing is known of settings inside the prefix; it has no diagnostics. What a request names instead of a prefix is a
//! cache object that was made beforehand (<https://ai.google.dev/gemini-api/docs/caching>, read on 2026-11-21).

use crate::model::overhead::Overhead;
use crate::model::prompt_cache::{CacheKeyRules, CachedContentRules, OutlineShape};

/// The member that names a cache object, in both spellings.
const CACHED_CONTENT: [&str; 2] = ["cachedContent", "cached_content"];

pub(super) const OVERHEAD: Overhead = Overhead {
    request: (0, 2),
    system: (0, 4),
    message: (0, 5),
    call: (0, 8),
    output: (0, 8),
    tool: (0, 10),
    tools: (0, 10),
    tool_text: 0,
    // Recorded twice: a schema of objects within objects was billed 1.4 times its JSON.
    nested_tool_text: 160,
    reasoning: (0, 0),
    schema: (0, 10),
};

pub(super) const CACHE_KEY: CacheKeyRules = CacheKeyRules {
    scopes: &[(CACHED_CONTENT[0], ""), (CACHED_CONTENT[1], "")],
    cached_content: Some(CachedContentRules {
        members: CACHED_CONTENT,
        model_prefix: "models/",
    }),
    ..CacheKeyRules::NONE
};

pub(super) const OUTLINE: OutlineShape = OutlineShape {
    expected: "an array under `contents`",
    leading_system: false,
    text_history: None,
    text_block: None,
    beside: None,
};

/// The members of a part in which thoughts are sealed, in both spellings.
pub(super) const SEALED_MEMBERS: &[&str] = &["thoughtSignature", "thought_signature"];
