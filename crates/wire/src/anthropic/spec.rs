//! What is special about Anthropic Messages, and the format's own names.

use contexture_ir::{Cancel, Fields, Item, Raw, Transcript, Usage, quote_json};
use serde_json::value::RawValue;

use super::prompt_cache::{self, CACHE_KEY, OUTLINE, OVERHEAD};
use super::stream::AnthropicStream;
use super::{detect, encode, lift, proxy, repair, request, response};
use crate::framing::StreamFraming;
use crate::http_profile::{CallPath, HttpProfile, RootEvidence, RootRule};
use crate::model::call_ids::HostedHalf;
use crate::model::chunk::{CacheTtl, Chunk, Dialect, Envelope};
use crate::model::conversion::{Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::Evidence;
use crate::model::format::Format;
use crate::model::json::string_field;
use crate::model::name_rule::NameRule;
use crate::model::overhead::Overhead;
use crate::model::paired_item::RoleRun;
use crate::model::prompt_cache::{CacheKeyRules, OutlineVisitor};
use crate::model::repair_rules::{CallIds, Charset, ItemRepair, RepairRules, Thinking, ToolRules};
use crate::model::structure::Structure;
use crate::outline::{member_at, visit_request};
use crate::proxy::ProxyEdits;
use crate::spec::{CacheMarkers, FormatHosts, FormatSpec, Identity, ProxyError, RequestMembers};
use crate::stream::StreamParser;

/// The format's name, also the key of its fields in `ctx:wire`.
pub(super) const FORMAT: &str = Format::Anthropic.as_str();
/// The `format` of opaque reasoning and compactions that the provider can read back.
pub(super) const FAMILY: &str = "anthropic-claude-v1";
/// The key under which a message's own unknown fields are stored on its first item.
pub(super) const MESSAGE: &str = "(message)";

/// The names of functions that Anthropic accepts.
pub(super) const NAME_RULE: NameRule = NameRule {
    max_bytes: 128,
    marks: "_-",
    letter_first: false,
};

/// How Anthropic arranges a history: one message per run, its own compactions in the assistant's turn.
pub(super) const STRUCTURE: Structure = Structure {
    user_compactions: false,
    chat_calls: false,
    custom_calls: false,
    merged_parts: Some("content"),
    alternating_turns: false,
    model_markers: true,
    head_markers: true,
    lead_markers: false,
};

/// Where a request says what becomes of thinking behind another history than the one it was answered to. Clients send it
/// with the header `anthropic-beta: thinking-binding-controls-2026-08-01`; without that the provider refuses the member
/// (Wei-Shaw/sub2api#6677).
const BLOCK_BINDING: [&str; 3] = ["thinking", "block_binding", "prefix_mismatch_behavior"];

const IDENTITY: Identity = Identity {
    catalogue_provider: Some("anthropic"),
    otel_provider: "anthropic",
    extension_slug: "anthropic",
    bare_extensions: false,
    opaque_maker: Some("anthropic"),
    hosts: FormatHosts::OwnAndCompatible,
};

pub(super) const MEMBERS: RequestMembers = RequestMembers {
    instructions: &["system"],
    history: "messages",
    content: "content",
    compiled: &[&["tools"], &["system"], &["messages"]],
    tool_choice: &["tool_choice"],
    usage: "usage",
    stream: &[("stream", "true")],
    provider_history: &[],
};

const HTTP: HttpProfile = HttpProfile {
    upstream: "anthropic",
    protocols: "Messages",
    upstream_url: Some("https://api.anthropic.com"),
    roots: &[
        RootRule {
            under: "/v1/messages",
            evidence: RootEvidence::Path,
        },
        // Sent by all of its clients, on paths that OpenAI has too.
        RootRule {
            under: "/v1",
            evidence: RootEvidence::Header("anthropic-version"),
        },
    ],
    base_url: "https://api.anthropic.com",
    base_url_variables: &["ANTHROPIC_BASE_URL"],
    api_key_variables: &["ANTHROPIC_API_KEY"],
    key_header: "x-api-key",
    key_prefix: "",
    request_signature: None,
    // Requests without a version are refused; new versions are opt-in, so this one stays valid.
    version_header: Some(("anthropic-version", "2023-06-01")),
    path: CallPath::Fixed(&["v1", "messages"]),
    framing: StreamFraming::ServerSentEvents,
};

/// The implementation of [`FormatSpec`] for Anthropic Messages.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl FormatSpec for Anthropic {
    fn format(&self) -> Format {
        Format::Anthropic
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

    fn encode_envelope(&self, _dialect: &Dialect, request: &Transcript) -> Envelope {
        request::lower_envelope(request)
    }

    fn encode_run(&self, dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
        encode::encode_run(dialect, run)
    }

    fn stream(&self) -> Option<Box<dyn StreamParser>> {
        Some(Box::new(AnthropicStream::default()))
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            format: Format::Anthropic,
            // Only some models accept a system message inside the history.
            mid_system: false,
            developer_role: true,
            signed_calls: false,
        }
    }

    fn repair_rules(&self) -> RepairRules {
        RepairRules {
            call_ids: CallIds {
                max_bytes: 64,
                charset: Charset::Plain,
            },
            user_first: true,
            // Current models refuse a prefill of their answer.
            user_last: true,
            ..RepairRules::pairs_only(Format::Anthropic)
        }
    }

    fn repair_item(&self, item: &Item) -> Option<ItemRepair> {
        repair::repair_item(item)
    }

    fn hosted_half(&self, item: &Item) -> Option<HostedHalf> {
        repair::hosted_half(item)
    }

    fn tool_rules(&self) -> ToolRules {
        repair::TOOL_RULES
    }

    fn thinking(&self, request: &Transcript) -> Thinking {
        repair::request_thinking(request)
    }

    fn thinking_member(&self) -> Option<&'static str> {
        Some(repair::THINKING)
    }

    fn read_thinking(&self, value: &Raw) -> Thinking {
        repair::read_thinking(value)
    }

    fn remove_thinking(&self, request: &mut Transcript) {
        repair::remove_thinking(request);
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

    fn detect_object(&self, object: &Fields<'_>) -> Option<Evidence> {
        detect::detect_object(object)
    }

    fn detect_messages(&self, messages: &[Fields<'_>]) -> Option<Evidence> {
        detect::detect_messages(messages)
    }

    fn overhead(&self) -> &'static Overhead {
        &OVERHEAD
    }

    fn silent_members(&self) -> &'static [&'static str] {
        &[
            "cache_control",
            "inference_geo",
            "metadata",
            "service_tier",
            "speed",
            "stream",
            "top_k",
        ]
    }

    fn uncounted_member(&self, member: &str, value: &str) -> Option<&'static str> {
        match member {
            "container" => Some("container: what the provider keeps in it"),
            "mcp_servers" => Some("mcp_servers: the tools of servers that the provider asks"),
            "context_management" => Some("context_management: what the provider clears or sums up"),
            // Explained to the model in some forty tokens, and counted down to it.
            "output_config" if value.contains("\"task_budget\"") => {
                Some("output_config.task_budget: what the provider says of it to the model")
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

    fn long_cache_write(&self, usage: &Usage) -> Option<u64> {
        prompt_cache::long_cache_write(usage)
    }

    fn markers(&self) -> Option<&'static dyn CacheMarkers> {
        Some(&Anthropic)
    }

    fn http(&self) -> Option<&'static HttpProfile> {
        Some(&HTTP)
    }

    fn drops_edited_thinking(&self, request: &Fields<'_>) -> bool {
        let behavior = member_at(request, &BLOCK_BINDING);
        behavior.is_some_and(|behavior| behavior.get() == r#""drop_block""#)
    }

    fn error_body(&self, error: &ProxyError<'_>) -> String {
        proxy::error_body(error.status, error.message)
    }

    fn proxy(&self) -> Option<&'static dyn ProxyEdits> {
        Some(&Anthropic)
    }

    fn text_response(&self, text: &str) -> Option<String> {
        let text = quote_json(text);
        Some(format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[{{"type":"text","text":{text}}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        ))
    }
}

impl CacheMarkers for Anthropic {
    fn field(&self) -> &'static str {
        "cache_control"
    }

    fn value(&self, ttl: CacheTtl) -> &'static str {
        match ttl {
            CacheTtl::Usual => r#"{"type":"ephemeral"}"#,
            CacheTtl::Long => r#"{"type":"ephemeral","ttl":"1h"}"#,
        }
    }

    fn content<'a>(&self, element: &Fields<'a>) -> Option<(&'a RawValue, &'static str)> {
        Some((element.get(&["content"])?, "text"))
    }

    fn can_carry(&self, kind: &str, block: &Fields<'_>) -> bool {
        match kind {
            // A marker on blank text is an error of the request.
            "text" => string_field(block, "text").is_some_and(|text| !text.trim().is_empty()),
            // A tool without a type is a function.
            "" => block.get(&["name"]).is_some(),
            // The provider's documentation: thinking is cached with its turn, never marked by itself.
            "thinking" | "redacted_thinking" | "fallback" => false,
            _ => true,
        }
    }

    fn head_block(&self) -> Option<&'static str> {
        Some("text")
    }

    fn max_markers(&self) -> Option<usize> {
        // tghamm/Anthropic.SDK#50
        Some(4)
    }

    fn can_mark_request(&self) -> bool {
        true
    }
}
