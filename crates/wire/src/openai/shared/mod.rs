//! What Chat Completions and Responses share: options, tools, custom tools, usage.
//!
//! Not here: anything that only one of them has.

pub(in crate::openai) mod custom_tools;
pub(in crate::openai) mod options;
pub(in crate::openai) mod prompt_cache;
pub(in crate::openai) mod proxy;

use contexture_ir::{Error, Extra, Fields, Raw};

use crate::framing::StreamFraming;
use crate::http_profile::{CallPath, HttpProfile, RootEvidence, RootRule};
use crate::model::chunk::Envelope;
use crate::model::format_extras::{set_hint, to_extras};
use crate::model::json::{ObjectWriter, string_field};
use crate::model::loss::Losses;
use crate::model::name_rule::NameRule;
use crate::model::repair_rules::ToolRules;

/// The catalogue's and OpenTelemetry's name of the provider, and the slug of its extension items.
pub(in crate::openai) const PROVIDER: &str = "openai";
/// The member by which a request forbids the provider to place cache markers by itself.
pub(in crate::openai) const CACHE_OPTIONS: &str = "prompt_cache_options";
/// The value of [`CACHE_OPTIONS`] by which only the request's own markers count.
pub(in crate::openai) const NO_AUTOMATIC_MARKERS: &str = r#"{"mode":"explicit"}"#;
/// The member of a block that is a cache marker.
pub(in crate::openai) const CACHE_MARKER: &str = "prompt_cache_breakpoint";
/// A cache marker with the usual time to live, thirty minutes.
pub(in crate::openai) const MARKER: &str = r#"{"mode":"explicit"}"#;
/// A cache marker with the long time to live, twelve hours.
pub(in crate::openai) const LONG_MARKER: &str = r#"{"mode":"explicit","ttl":"12h"}"#;

/// The names of functions that both formats accept.
pub(in crate::openai) const NAME_RULE: NameRule = NameRule {
    max_bytes: 64,
    marks: "_-",
    letter_first: false,
};

/// What both formats demand of tools.
pub(in crate::openai) const TOOL_RULES: ToolRules = ToolRules {
    open_arrays: false,
    ..ToolRules::NONE
};

/// How the provider is reached, but for the path of a call.
pub(in crate::openai) const HTTP: HttpProfile = HttpProfile {
    upstream: PROVIDER,
    protocols: "Chat Completions and Responses",
    // Paths of clients have the version, which `base_url` has too.
    upstream_url: Some("https://api.openai.com"),
    // What is left of the version: other providers' paths and headers say more.
    roots: &[RootRule {
        under: "/v1",
        evidence: RootEvidence::Path,
    }],
    base_url: "https://api.openai.com/v1",
    base_url_variables: &["OPENAI_BASE_URL"],
    api_key_variables: &["OPENAI_API_KEY"],
    key_header: "authorization",
    key_prefix: "Bearer ",
    request_signature: None,
    version_header: None,
    path: CallPath::Fixed(&[]),
    framing: StreamFraming::ServerSentEvents,
};

/// Reports whether a block has text: a marker on a blank one is refused.
pub(in crate::openai) fn carries_text(block: &Fields<'_>) -> bool {
    string_field(block, "text").is_some_and(|text| !text.trim().is_empty())
}

/// Reads the counts of a response's usage; the object itself is stored whole elsewhere.
pub(in crate::openai) struct UsageFields<'f>(pub(in crate::openai) &'f Fields<'f>);

impl UsageFields<'_> {
    /// Returns the count of that name, if it is a number.
    pub(in crate::openai) fn get(&self, name: &str) -> Option<u64> {
        serde_json::from_str(self.0.get(&[name])?.get()).ok()
    }

    /// Returns the count of that name in an object of details.
    pub(in crate::openai) fn get_nested(&self, group: &str, name: &str) -> Option<u64> {
        let inner = Fields::parse(self.0.get(&[group])?.get()).ok()?;
        UsageFields(&inner).get(name)
    }
}

/// The members of a response's usage as they are stored.
pub(in crate::openai) fn usage_fields(fields: Extra) -> Extra {
    let mut fields = to_extras(fields);
    // Usage without members would be taken for another format's, whose figures are written out.
    if fields.is_empty() {
        set_hint(&mut fields, "~usage", "empty");
    }
    fields
}

/// An error about a value of the wrong type or an unknown word.
pub(in crate::openai) fn unexpected_value(expected: &'static str, found: &str) -> Error {
    Error::Unexpected {
        path: String::new(),
        expected,
        found: found.chars().take(60).collect(),
    }
}

/// Fields with a prefix before their names.
pub(in crate::openai) fn with_key_prefix(
    prefix: &str,
    fields: Extra,
) -> impl Iterator<Item = (String, Raw)> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(k, v)| (format!("{prefix}{k}"), v.clone()))
        .collect();
    fields.into_iter()
}

/// The fields whose names have the prefix, without it.
pub(in crate::openai) fn strip_key_prefix(prefix: &str, fields: &Extra) -> Extra {
    let strip =
        |(key, value): (&str, &Raw)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()));
    fields.iter().filter_map(strip).collect()
}

/// The fields without those that have one of the prefixes.
pub(in crate::openai) fn without_key_prefixes(prefixes: &[&str], fields: &Extra) -> Extra {
    fields
        .iter()
        .filter(|(key, _)| !prefixes.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// The fields without those of the given names.
pub(in crate::openai) fn without_keys(names: &[&str], fields: &Extra) -> Extra {
    let rest = fields.iter().filter(|(key, _)| !names.contains(key));
    rest.map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// Puts an envelope together: `head`, the array `history` led by `lead`, `tail`.
///
/// Tools are in the head because they change more rarely than the history, options in the tail because they change more
/// often: a provider's cache knows a request by its beginning.
pub(in crate::openai) fn envelope_around(
    history: &str,
    head: &ObjectWriter,
    lead: Vec<String>,
    tail: &ObjectWriter,
    losses: Losses,
) -> Envelope {
    let comma = |object: &ObjectWriter| if object.is_empty() { "" } else { "," };
    Envelope {
        before: format!("{{{}{}\"{history}\":[", head.inner_json(), comma(head)),
        lead: lead.join(","),
        after: format!("]{}{}}}", comma(tail), tail.inner_json()),
        losses: losses.into_vec(),
    }
}

/// Members that are settings: nothing of them is text that the model reads.
pub(in crate::openai) const SILENT_MEMBERS: &[&str] = &[
    "background",
    "context",
    "frequency_penalty",
    "include",
    "logit_bias",
    "logprobs",
    "max_tool_calls",
    "metadata",
    "modalities",
    "models",
    "moderation",
    "n",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "provider",
    "reasoning_format",
    "route",
    "safety_identifier",
    "seed",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "summary",
    "top_logprobs",
    "transforms",
    "truncation",
    "usage",
    "user",
];
