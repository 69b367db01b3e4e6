//! What is special about OpenAI Chat Completions, and the format's own names.

use contexture_ir::{Fields, Transcript, quote_json};
use serde_json::value::RawValue;

use super::stream::ChatStream;
use super::{encode, lift, request, response};
use crate::http_profile::{CallPath, HttpProfile};
use crate::model::chunk::{CacheTtl, Chunk, Dialect, Envelope};
use crate::model::conversion::{Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::format::Format;
use crate::model::name_rule::NameRule;
use crate::model::paired_item::RoleRun;
use crate::model::repair_rules::{CallIds, Charset, RepairRules};
use crate::model::structure::Structure;
use crate::openai::shared::{
    CACHE_MARKER, CACHE_OPTIONS, HTTP, LONG_MARKER, MARKER, NAME_RULE, PROVIDER, carries_text,
    proxy,
};
use crate::proxy::ProxyEdits;
use crate::spec::{CacheMarkers, FormatHosts, FormatSpec, Identity, ProxyError, RequestMembers};
use crate::stream::StreamParser;

/// The format.
pub(super) const FORMAT: Format = Format::OpenAiChat;
/// The key of Chat's own fields in `ctx:wire`.
pub(super) const NAME: &str = FORMAT.as_str();

/// How Chat arranges a history: message by message, system messages anywhere, compactions as the user's text.
pub(super) const STRUCTURE: Structure = Structure {
    user_compactions: true,
    chat_calls: true,
    merged_parts: None,
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
};

const PROFILE: HttpProfile = HttpProfile {
    path: CallPath::Fixed(&["chat", "completions"]),
    ..HTTP
};

/// OpenAI Chat Completions.
#[derive(Debug)]
pub(crate) struct Chat;

impl FormatSpec for Chat {
    fn format(&self) -> Format {
        FORMAT
    }

    fn identity(&self) -> &'static Identity {
        &IDENTITY
    }

    fn parse(&self, json: &str) -> Result<Lifted, WireError> {
        lift(json)
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

    fn name_rule(&self) -> Option<&'static NameRule> {
        Some(&NAME_RULE)
    }

    fn members(&self) -> Option<&'static RequestMembers> {
        Some(&MEMBERS)
    }

    fn structure(&self) -> &'static Structure {
        &STRUCTURE
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

    fn automatic_option(&self) -> Option<&'static str> {
        Some(CACHE_OPTIONS)
    }
}
