//! Which settings of a request are part of the prefix that a provider caches.
//!
//! Anthropic: the choice of a tool, thinking and the form of the answer decide whether messages are read; tools and system
//! prompt are not touched ("What invalidates the cache",
//! <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>). OpenAI: the reasons its diagnostics know
//! (<https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics>). Read on 2026-11-21. Nothing is known of
//! Gemini's.

use contexture_ir::Fields;
use contexture_wire::Format;

use crate::outline::RequestPart;

/// A setting of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixSetting {
    /// The path of its members: `["reasoning", "effort"]`.
    pub path: &'static [&'static str],
    /// The part of the request in whose place it stands in the cache's order.
    pub part: RequestPart,
    /// The provider's word for its change; empty where it has none.
    pub reason: &'static str,
}

const fn prefix_setting(
    path: &'static [&'static str],
    part: RequestPart,
    reason: &'static str,
) -> PrefixSetting {
    PrefixSetting { path, part, reason }
}

const ANTHROPIC: &[PrefixSetting] = &[
    prefix_setting(&["tool_choice"], RequestPart::Settings, "messages_changed"),
    prefix_setting(&["thinking"], RequestPart::Settings, "messages_changed"),
    prefix_setting(
        &["output_config"],
        RequestPart::Settings,
        "messages_changed",
    ),
];
const CHAT: &[PrefixSetting] = &[
    prefix_setting(
        &["response_format"],
        RequestPart::Form,
        "text_format_changed",
    ),
    prefix_setting(
        &["reasoning_effort"],
        RequestPart::Form,
        "reasoning_effort_changed",
    ),
    prefix_setting(&["verbosity"], RequestPart::Form, "verbosity_changed"),
];
const RESPONSES: &[PrefixSetting] = &[
    prefix_setting(
        &["text", "format"],
        RequestPart::Form,
        "text_format_changed",
    ),
    prefix_setting(
        &["reasoning", "effort"],
        RequestPart::Form,
        "reasoning_effort_changed",
    ),
    prefix_setting(
        &["text", "verbosity"],
        RequestPart::Form,
        "verbosity_changed",
    ),
];

/// The settings of a format that are part of the prefix.
#[must_use]
pub const fn prefix_settings(format: Format) -> &'static [PrefixSetting] {
    match format {
        Format::Anthropic => ANTHROPIC,
        Format::OpenAiChat => CHAT,
        Format::OpenAiResponses => RESPONSES,
        Format::Gemini | Format::Ui | Format::Items => &[],
    }
}

/// The members that a cache is never shared across, beside the model.
#[must_use]
pub const fn scope_members(format: Format) -> &'static [(&'static str, &'static str)] {
    match format {
        Format::OpenAiChat | Format::OpenAiResponses => &[
            ("prompt_cache_key", "prompt_cache_key_changed"),
            ("service_tier", "service_tier_changed"),
        ],
        Format::Gemini => &[("cachedContent", ""), ("cached_content", "")],
        Format::Anthropic | Format::Ui | Format::Items => &[],
    }
}

/// What a request says for a setting; empty if nothing.
#[must_use]
pub fn setting_value<'a>(fields: &Fields<'a>, path: &[&str]) -> &'a str {
    let Some((first, rest)) = path.split_first() else {
        return "";
    };
    let found = fields.get(&[first]).map(|value| value.get());
    match (found, rest) {
        (None | Some("null"), _) => "",
        (Some(text), []) => text,
        (Some(text), rest) => Fields::parse(text).map_or("", |inner| setting_value(&inner, rest)),
    }
}
