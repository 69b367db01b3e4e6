//! What Bedrock's models are billed around texts, and what its prompt cache compares.
//!
//! The tokens around a text are the model's, which may be anybody's: the bounds include those of the other formats. A cache
//! point ends a prefix of tools, system prompt and messages, in this order
//! (<https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>). There are no diagnostics.

use contexture_ir::{Fields, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::spec::{Bedrock, FORMAT};
use crate::model::chunk::CacheTtl;
use crate::model::json::string_field;
use crate::model::overhead::Overhead;
use crate::model::prompt_cache::{CacheKeyRules, OutlineShape, PrefixSetting, RequestPart};
use crate::spec::{CacheMarkers, HeadPart};

pub(super) const OVERHEAD: Overhead = Overhead {
    request: (0, 3),
    system: (0, 4),
    message: (0, 5),
    call: (0, 45),
    output: (0, 30),
    tool: (0, 14),
    tools: (0, 804),
    tool_text: 0,
    nested_tool_text: 100,
    reasoning: (0, 40),
    schema: (0, 200),
};

pub(super) const CACHE_KEY: CacheKeyRules = CacheKeyRules {
    settings: &[
        PrefixSetting::new(
            &["toolConfig", "toolChoice"],
            RequestPart::Settings,
            "messages_changed",
        ),
        PrefixSetting::new(
            &["additionalModelRequestFields"],
            RequestPart::Settings,
            "messages_changed",
        ),
        PrefixSetting::new(&["outputConfig"], RequestPart::Settings, "messages_changed"),
    ],
    explicit_markers: true,
    ..CacheKeyRules::NONE
};

pub(super) const OUTLINE: OutlineShape = OutlineShape {
    expected: "an array under `messages`",
    leading_system: false,
    text_history: None,
    text_block: None,
    beside: None,
};

/// The paths of the array of tools.
pub(super) const TOOL_PATHS: &[&[&str]] = &[&["toolConfig", "tools"]];

/// What may stand in front of a cache point; thoughts may not.
const MARKED_BLOCKS: [&str; 10] = [
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "citationsContent",
    "toolSpec",
    "systemTool",
];

/// Of what a response says of writes to the cache.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CacheDetail {
    ttl: String,
    input_tokens: u64,
}

/// Returns how many tokens were written to the cache for an hour, as reported.
pub(super) fn long_cache_write(usage: &Usage) -> Option<u64> {
    let reported = usage.extra.wire_fields(FORMAT);
    let details: Vec<CacheDetail> = reported.get("cacheDetails")?.parse_as().ok()?;
    let long = details.iter().filter(|detail| detail.ttl == "1h");
    Some(long.map(|detail| detail.input_tokens).sum())
}

impl CacheMarkers for Bedrock {
    fn field(&self) -> &'static str {
        "cachePoint"
    }

    fn value(&self, ttl: CacheTtl) -> &'static str {
        match ttl {
            CacheTtl::Usual => r#"{"type":"default"}"#,
            CacheTtl::Long => r#"{"type":"default","ttl":"1h"}"#,
        }
    }

    fn is_own_block(&self) -> bool {
        true
    }

    fn content<'a>(&self, element: &Fields<'a>) -> Option<(&'a RawValue, &'static str)> {
        Some((element.get(&["content"])?, ""))
    }

    fn can_carry(&self, _kind: &str, block: &Fields<'_>) -> bool {
        let is_said = string_field(block, "text").is_some_and(|text| !text.trim().is_empty());
        is_said
            || MARKED_BLOCKS
                .iter()
                .any(|member| block.get(&[member]).is_some())
    }

    fn head_block(&self) -> Option<&'static str> {
        // Blocks have no type, and a bare string stands for none.
        Some("")
    }

    fn head_path(&self, part: HeadPart) -> &'static [&'static str] {
        match part {
            HeadPart::Tools => &["toolConfig", "tools"],
            HeadPart::System => &["system"],
        }
    }
}
