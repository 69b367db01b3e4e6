//! What is special about OpenAI Chat Completions, and the format's own names.

use std::collections::BTreeMap;

use contexture_ir::{Cancel, Fields, Item, Transcript, quote_json};
use serde_json::value::RawValue;

use super::stream::ChatStream;
use super::{encode, lift, repair, request, response};
use crate::http_profile::{CallPath, HttpProfile};
use crate::model::chunk::{CacheTtl, Chunk, Dialect, Envelope};
use crate::model::conversion::{Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::{Evidence, has_chat_words};
use crate::model::format::Format;
use crate::model::json::string_field;
use crate::model::name_rule::NameRule;
use crate::model::overhead::Overhead;
use crate::model::paired_item::RoleRun;
use crate::model::prompt_cache::{
    CacheKeyRules, FreeMembers, OutlineShape, OutlineVisitor, PrefixSetting, RequestPart,
    StoredAnswers,
};
use crate::model::repair_rules::{CallIds, Charset, ItemRepair, RepairRules, ToolRules};
use crate::model::structure::Structure;
use crate::openai::shared::prompt_cache::{self, OVERHEAD};
use crate::openai::shared::{
    CACHE_MARKER, CACHE_OPTIONS, HTTP, LONG_MARKER, MARKER, NAME_RULE, NO_AUTOMATIC_MARKERS,
    PROVIDER, SILENT_MEMBERS, TOOL_RULES, carries_text, proxy,
};
use crate::outline::visit_request;
use crate::proxy::ProxyEdits;
use crate::spec::{
    CacheMarkers, FormatHosts, FormatSpec, Identity, OptionMembers, ProxyError, RequestMembers,
};
use crate::stream::StreamParser;

/// The format that this folder implements.
pub(super) const FORMAT: Format = Format::OpenAiChat;
/// The key of Chat's own fields in `ctx:wire`.
pub(super) const NAME: &str = FORMAT.as_str();

/// How Chat arranges a history: message by message, system messages anywhere, compactions as the user's text.
pub(super) const STRUCTURE: Structure = Structure {
    user_compactions: true,
    chat_calls: true,
    custom_calls: true,
    merged_parts: None,
    alternating_turns: false,
    model_markers: false,
    head_markers: false,
    lead_markers: true,
};

const IDENTITY: Identity = Identity {
    // OpenAI's own models are called through Responses; Chat is what other hosts speak.
    catalogue_provider: None,
    otel_provider: PROVIDER,
    extension_slug: PROVIDER,
    bare_extensions: false,
    // Chat has no member for sealed reasoning, not even OpenAI's.
    opaque_maker: None,
    hosts: FormatHosts::Any,
};

pub(super) const MEMBERS: RequestMembers = RequestMembers {
    instructions: &[],
    history: "messages",
    content: "content",
    compiled: &[&["tools"], &["functions"], &["messages"], &[CACHE_OPTIONS]],
    tool_choice: &["tool_choice", "function_call"],
    usage: "usage",
    // Without the option a stream ends without its usage.
    stream: &[
        ("stream", "true"),
        ("stream_options", r#"{"include_usage":true}"#),
    ],
    provider_history: &[],
};

const OPTIONS: OptionMembers = OptionMembers {
    output_limit: &["max_tokens", "max_completion_tokens"],
    ..OptionMembers::SNAKE_CASE
};

const PROFILE: HttpProfile = HttpProfile {
    path: CallPath::Fixed(&["chat", "completions"]),
    ..HTTP
};

/// What of a request belongs to the cached prefix.
const CACHE_KEY: CacheKeyRules = CacheKeyRules {
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
    // Neither is named among what has to be equal, and the diagnostics have no word for a difference in them.
    free: FreeMembers {
        not_streamed: prompt_cache::NOT_STREAMED,
        output_limit: &["max_completion_tokens", "max_tokens"],
        stored: Some(StoredAnswers {
            member: "store",
            by_default: false,
        }),
    },
    ..prompt_cache::CACHE_KEY
};

const OUTLINE: OutlineShape = OutlineShape {
    expected: "an array under `messages`",
    // There is no member for the system prompt.
    leading_system: true,
    text_history: None,
    text_block: None,
    beside: Some("tool_calls"),
};

/// What was seen in messages that use words which only this format has.
const CHAT_WORDS: &str = "messages with `tool_calls`, `tool_call_id` or a system role";

/// The implementation of [`FormatSpec`] for OpenAI Chat Completions.
#[derive(Debug)]
pub(crate) struct Chat;

impl FormatSpec for Chat {
    fn format(&self) -> Format {
        FORMAT
    }

    fn identity(&self) -> &'static Identity {
        &IDENTITY
    }

    fn parse(&self, json: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
        lift(json, cancel)
    }

    fn encode_response(&self, transcript: &Transcript) -> Lowered {
        response::lower_response(transcript)
    }

    fn encode_envelope(&self, dialect: &Dialect, request: &Transcript) -> Envelope {
        request::lower_envelope(dialect, request)
    }

    fn encode_run(&self, dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
        encode::encode_run(dialect, run)
    }

    fn stream(&self) -> Option<Box<dyn StreamParser>> {
        Some(Box::new(ChatStream::default()))
    }

    fn repair_rules(&self) -> RepairRules {
        RepairRules {
            call_ids: CallIds {
                max_bytes: 40,
                charset: Charset::Any,
            },
            ..RepairRules::pairs_only(FORMAT)
        }
    }

    fn repair_items(&self, items: &[&Item]) -> BTreeMap<usize, ItemRepair> {
        repair::repair_items(items)
    }

    fn tool_rules(&self) -> ToolRules {
        ToolRules {
            empty_list: false,
            ..TOOL_RULES
        }
    }

    fn name_rule(&self) -> Option<&'static NameRule> {
        Some(&NAME_RULE)
    }

    fn members(&self) -> Option<&'static RequestMembers> {
        Some(&MEMBERS)
    }

    fn structure(&self) -> &'static Structure {
        &STRUCTURE
    }

    fn option_members(&self) -> &'static OptionMembers {
        &OPTIONS
    }

    fn detect_object(&self, object: &Fields<'_>) -> Option<Evidence> {
        let has_choices = object.get(&["choices"]).is_some();
        has_choices.then_some(Evidence::new(
            Evidence::OWN_MEMBER,
            "an object with `choices`",
        ))
    }

    fn detect_messages(&self, messages: &[Fields<'_>]) -> Option<Evidence> {
        messages.first()?.get(&["role"])?;
        // Other programs have messages with a role too, and what is said under names of their own.
        let says = |message: &Fields<'_>| {
            let words = message.get(&["content", "tool_calls", "function_call"]);
            words.is_some()
        };
        messages.iter().any(says).then_some(())?;
        // Anthropic's blocks stand between the two ranks of these words: they weigh more than a system role in the
        // middle, which newer Claude models accept, but less than a role that only tools have.
        if has_chat_words(messages) {
            return Some(Evidence::new(Evidence::OWN_WORDS + 2, CHAT_WORDS));
        }
        let is_system = |message| string_field(message, "role").as_deref() == Some("system");
        if messages.iter().any(is_system) {
            return Some(Evidence::new(Evidence::OWN_WORDS, CHAT_WORDS));
        }
        // Hosts of this format are the most, so plain messages are taken for theirs.
        Some(Evidence::new(
            Evidence::COMMON_SHAPE,
            "messages with `role` and `content`",
        ))
    }

    fn tool_paths(&self) -> &'static [&'static [&'static str]] {
        &[&["tools"], &["functions"]]
    }

    fn overhead(&self) -> &'static Overhead {
        &OVERHEAD
    }

    fn asks_to_cut(&self, member: &str, value: &str) -> bool {
        // OpenRouter's, which takes out the middle of what is too long.
        matches!(member, "transforms" | "plugins") && value.contains("middle-out")
            || member == "plugins" && value.contains("context-compression")
    }

    fn silent_members(&self) -> &'static [&'static str] {
        SILENT_MEMBERS
    }

    fn uncounted_member(&self, member: &str, _value: &str) -> Option<&'static str> {
        (member == "web_search_options").then_some("web_search_options: what the provider finds")
    }

    fn cache_key(&self) -> &'static CacheKeyRules {
        &CACHE_KEY
    }

    fn outline<'a>(
        &self,
        body: &Fields<'a>,
        visitor: &mut dyn OutlineVisitor<'a>,
    ) -> Result<(), &'static str> {
        visit_request(self, &OUTLINE, body, visitor)
    }

    fn markers(&self) -> Option<&'static dyn CacheMarkers> {
        Some(&Chat)
    }

    fn http(&self) -> Option<&'static HttpProfile> {
        Some(&PROFILE)
    }

    fn error_body(&self, error: &ProxyError<'_>) -> String {
        proxy::error_body(error)
    }

    fn proxy(&self) -> Option<&'static dyn ProxyEdits> {
        Some(&Chat)
    }

    fn text_response(&self, text: &str) -> Option<String> {
        let text = quote_json(text);
        Some(format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"scripted","choices":[{{"index":0,"message":{{"role":"assistant","content":{text},"refusal":null}},"finish_reason":"stop","logprobs":null}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
        ))
    }
}

impl CacheMarkers for Chat {
    fn field(&self) -> &'static str {
        CACHE_MARKER
    }

    fn value(&self, ttl: CacheTtl) -> &'static str {
        match ttl {
            CacheTtl::Usual => MARKER,
            CacheTtl::Long => LONG_MARKER,
        }
    }

    fn content<'a>(&self, element: &Fields<'a>) -> Option<(&'a RawValue, &'static str)> {
        let role = element.get(&["role"]).map_or("", RawValue::get);
        // Blocks of the model's own messages are refused a marker.
        (role != "\"assistant\"").then_some(())?;
        Some((element.get(&["content"])?, "text"))
    }

    fn can_carry(&self, kind: &str, block: &Fields<'_>) -> bool {
        match kind {
            "text" => carries_text(block),
            kind => matches!(kind, "image_url" | "input_audio" | "file"),
        }
    }

    fn automatic_option(&self) -> Option<(&'static str, &'static str)> {
        Some((CACHE_OPTIONS, NO_AUTOMATIC_MARKERS))
    }
}
