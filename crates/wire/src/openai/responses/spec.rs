//! What is special about OpenAI Responses, and the format's own names.

use contexture_ir::{Cancel, Fields, Item, Transcript, quote_json};
use serde_json::value::RawValue;

use super::stream::ResponsesStream;
use super::{encode, encode_run, extension, lift, repair, request, response};
use crate::http_profile::{CallPath, HttpProfile};
use crate::model::call_ids::HostedHalf;
use crate::model::chunk::{CacheTtl, Chunk, Dialect, Envelope};
use crate::model::conversion::{Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::Evidence;
use crate::model::format::Format;
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
pub(super) const FORMAT: Format = Format::OpenAiResponses;
/// The key of this format's hints in `ctx:wire`.
pub(super) const NAME: &str = FORMAT.as_str();
/// The `format` of reasoning and compactions that the provider can read back.
pub(super) const FAMILY: &str = "openai-responses-v1";

/// Whether items are sent to a model or come from one: what comes has ids and statuses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemDirection {
    Input,
    Output,
}

/// How Responses arranges a history: item by item, compactions as the user's text.
pub(super) const STRUCTURE: Structure = Structure {
    user_compactions: true,
    chat_calls: false,
    custom_calls: true,
    merged_parts: None,
    alternating_turns: false,
    model_markers: false,
    head_markers: false,
    lead_markers: false,
};

const IDENTITY: Identity = Identity {
    catalogue_provider: Some(PROVIDER),
    otel_provider: PROVIDER,
    extension_slug: PROVIDER,
    // Our items have this format's shapes, so its own types need no slug.
    bare_extensions: true,
    opaque_maker: Some(PROVIDER),
    hosts: FormatHosts::OwnAndCompatible,
};

pub(super) const MEMBERS: RequestMembers = RequestMembers {
    instructions: &["instructions"],
    history: "input",
    content: "content",
    compiled: &[&["tools"], &["instructions"], &["input"], &[CACHE_OPTIONS]],
    tool_choice: &["tool_choice", "function_call"],
    usage: "usage",
    stream: &[("stream", "true")],
    provider_history: &["previous_response_id", "conversation"],
};

const OPTIONS: OptionMembers = OptionMembers {
    output_limit: &["max_output_tokens"],
    ..OptionMembers::SNAKE_CASE
};

const PROFILE: HttpProfile = HttpProfile {
    path: CallPath::Fixed(&["responses"]),
    ..HTTP
};

/// What of a request belongs to the cached prefix.
const CACHE_KEY: CacheKeyRules = CacheKeyRules {
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
    // Neither is named among what has to be equal, and the diagnostics have no word for a difference in them.
    free: FreeMembers {
        not_streamed: prompt_cache::NOT_STREAMED,
        output_limit: &["max_output_tokens"],
        stored: Some(StoredAnswers {
            member: "store",
            by_default: true,
        }),
    },
    ..prompt_cache::CACHE_KEY
};

const OUTLINE: OutlineShape = OutlineShape {
    expected: "an array or a text under `input`",
    leading_system: false,
    text_history: Some("user"),
    text_block: None,
    beside: None,
};

/// The implementation of [`FormatSpec`] for OpenAI Responses.
#[derive(Debug)]
pub(crate) struct Responses;

impl FormatSpec for Responses {
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

    fn encode_listed_instructions(
        &self,
        dialect: &Dialect,
        request: &Transcript,
    ) -> Option<String> {
        Some(request::encode_listed_instructions(dialect, request))
    }

    fn restore_history_shape(
        &self,
        request: &Transcript,
        envelope: &mut Envelope,
        chunks: &mut Vec<String>,
    ) {
        request::restore_input_shape(request, envelope, chunks);
    }

    fn encode_run(&self, dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
        encode_run::encode_run(dialect, run)
    }

    fn stream(&self) -> Option<Box<dyn StreamParser>> {
        Some(Box::new(ResponsesStream::default()))
    }

    fn repair_rules(&self) -> RepairRules {
        RepairRules {
            call_ids: CallIds {
                max_bytes: 64,
                charset: Charset::Plain,
            },
            // A request in which an item's id stands twice is refused.
            unique_item_ids: true,
            ..RepairRules::pairs_only(FORMAT)
        }
    }

    fn without_refused_nulls(&self, item: &Item) -> Option<Item> {
        match item {
            Item::Reasoning(reasoning) => {
                encode::without_null_lists(reasoning).map(Item::Reasoning)
            }
            _ => None,
        }
    }

    fn repair_item(&self, item: &Item) -> Option<ItemRepair> {
        repair::repair_item(item)
    }

    fn hosted_half(&self, item: &Item) -> Option<HostedHalf> {
        extension::hosted_half(item)
    }

    fn tool_rules(&self) -> ToolRules {
        TOOL_RULES
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
        let has = |name: &str| object.get(&[name]).is_some();
        (has("input") || has("output")).then_some(Evidence::new(
            Evidence::SHARED_MEMBER,
            "an object with `input` or `output`",
        ))
    }

    fn overhead(&self) -> &'static Overhead {
        &OVERHEAD
    }

    fn asks_to_cut(&self, member: &str, value: &str) -> bool {
        member == "truncation" && !matches!(value, "null" | "\"disabled\"")
    }

    fn silent_members(&self) -> &'static [&'static str] {
        SILENT_MEMBERS
    }

    fn uncounted_member(&self, member: &str, value: &str) -> Option<&'static str> {
        match member {
            "previous_response_id" => {
                Some("previous_response_id: the history that the provider keeps")
            }
            "conversation" => Some("conversation: the history that the provider keeps"),
            // The reader's hint for an empty text.
            "~instructions" => {
                Some("instructions: empty, in whose place the provider may put a text of its own")
            }
            "prompt" => Some("prompt: the text that the provider keeps"),
            "context_management" => Some("context_management: what the provider sums up"),
            // Several lines of thought, each of which is billed as input again.
            "reasoning.mode" => Some("reasoning.mode: what the provider adds for it"),
            "reasoning" if value.contains("\"mode\"") => {
                Some("reasoning.mode: what the provider adds for it")
            }
            _ => None,
        }
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
        Some(&Responses)
    }

    fn http(&self) -> Option<&'static HttpProfile> {
        Some(&PROFILE)
    }

    fn error_body(&self, error: &ProxyError<'_>) -> String {
        proxy::error_body(error)
    }

    fn proxy(&self) -> Option<&'static dyn ProxyEdits> {
        Some(&Responses)
    }

    fn text_response(&self, text: &str) -> Option<String> {
        let text = quote_json(text);
        Some(format!(
            r#"{{"id":"resp_1","object":"response","created_at":0,"status":"completed","model":"scripted","output":[{{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}],"usage":{{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}}"#
        ))
    }
}

impl CacheMarkers for Responses {
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
        let word = |name| element.get(&[name]).map_or("", RawValue::get);
        let body = match word("type") {
            "" | "\"message\"" if word("role") != "\"assistant\"" => "content",
            "\"function_call_output\"" | "\"custom_tool_call_output\"" => "output",
            _ => return None,
        };
        Some((element.get(&[body])?, "input_text"))
    }

    fn can_carry(&self, kind: &str, block: &Fields<'_>) -> bool {
        match kind {
            "input_text" => carries_text(block),
            kind => matches!(kind, "input_image" | "input_file"),
        }
    }

    fn automatic_option(&self) -> Option<(&'static str, &'static str)> {
        Some((CACHE_OPTIONS, NO_AUTOMATIC_MARKERS))
    }
}
