//! What is special about Gemini, and the format's own names.

use contexture_ir::{Cancel, Fields, Transcript, quote_json};

use super::encode::Signing;
use super::prompt_cache::{CACHE_KEY, OUTLINE, OVERHEAD, SEALED_MEMBERS};
use super::stream::GeminiStream;
use super::{encode, lift, proxy, request, response};
use crate::framing::StreamFraming;
use crate::http_profile::{CallPath, HttpProfile, RootEvidence, RootRule};
use crate::model::chunk::{Chunk, Dialect, Envelope};
use crate::model::conversion::{Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::{Evidence, member_objects};
use crate::model::format::Format;
use crate::model::name_rule::NameRule;
use crate::model::overhead::Overhead;
use crate::model::paired_item::RoleRun;
use crate::model::prompt_cache::{CacheKeyRules, OutlineVisitor};
use crate::model::repair_rules::{CallIds, Charset, RepairRules};
use crate::model::structure::Structure;
use crate::outline::visit_request;
use crate::proxy::ProxyEdits;
use crate::spec::{FormatHosts, FormatSpec, Identity, OptionMembers, ProxyError, RequestMembers};
use crate::stream::StreamParser;

/// The format's name, also the key of its fields in `ctx:wire`.
pub(super) const FORMAT: &str = Format::Gemini.as_str();
/// The `format` of opaque reasoning that Gemini makes.
pub(super) const FAMILY: &str = "google-gemini-v1";
/// How the `format` of opaque reasoning begins that Gemini can read back.
pub(super) const MAKER: &str = "google";
/// The key under which a content's own unknown fields are stored on its first item.
pub(super) const CONTENT: &str = "(content)";

/// The names of functions that Gemini accepts.
pub(super) const NAME_RULE: NameRule = NameRule {
    max_bytes: 128,
    marks: "_-.:",
    letter_first: true,
};

/// How Gemini arranges a history: one content per run, compactions as the user's text.
pub(super) const STRUCTURE: Structure = Structure {
    user_compactions: true,
    chat_calls: false,
    custom_calls: false,
    merged_parts: Some("parts"),
    alternating_turns: false,
    model_markers: false,
    head_markers: false,
    lead_markers: false,
};

const IDENTITY: Identity = Identity {
    catalogue_provider: Some("google"),
    otel_provider: "gcp.gen_ai",
    extension_slug: "gemini",
    bare_extensions: false,
    opaque_maker: Some(MAKER),
    hosts: FormatHosts::Own,
};

pub(super) const MEMBERS: RequestMembers = RequestMembers {
    instructions: &["systemInstruction", "system_instruction"],
    history: "contents",
    content: "parts",
    compiled: &[
        &["tools"],
        &["systemInstruction", "system_instruction"],
        &["contents"],
    ],
    tool_choice: &["toolConfig", "tool_config"],
    usage: "usageMetadata",
    // A stream is asked for in the address.
    stream: &[],
    provider_history: &["cachedContent", "cached_content"],
};

const OPTIONS: OptionMembers = OptionMembers {
    holder: Some("generationConfig"),
    output_limit: &["maxOutputTokens"],
    temperature: "temperature",
    top_p: "topP",
};

const HTTP: HttpProfile = HttpProfile {
    upstream: "gemini",
    protocols: "`generateContent`",
    upstream_url: Some("https://generativelanguage.googleapis.com"),
    roots: &[
        RootRule {
            under: "/v1beta",
            evidence: RootEvidence::Path,
        },
        // Newer clients call this too, with paths such as `/v1/models/gemini-3:countTokens`.
        RootRule {
            under: "/v1",
            evidence: RootEvidence::Verb,
        },
        RootRule {
            under: "/v1",
            evidence: RootEvidence::KeyHeader,
        },
    ],
    base_url: "https://generativelanguage.googleapis.com",
    base_url_variables: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"],
    api_key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    key_header: "x-goog-api-key",
    key_prefix: "",
    request_signature: None,
    version_header: None,
    path: CallPath::Model {
        prefix: &["v1beta", "models"],
        separator: ':',
        whole: "generateContent",
        stream: "streamGenerateContent",
        // Without it the stream is one JSON array instead of server-sent events.
        stream_query: "alt=sse",
    },
    framing: StreamFraming::ServerSentEvents,
};

/// The implementation of [`FormatSpec`] for Gemini `generateContent`.
#[derive(Debug)]
pub(crate) struct Gemini;

impl FormatSpec for Gemini {
    fn format(&self) -> Format {
        Format::Gemini
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
        // Gemini 3 refuses a call without a signature; other models' calls then get the documented stand-in.
        let signing = if dialect.signed_calls {
            Signing::Sentinel
        } else {
            Signing::AsIs
        };
        encode::encode_run(run, signing)
    }

    fn stream(&self) -> Option<Box<dyn StreamParser>> {
        Some(Box::new(GeminiStream::default()))
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            format: Format::Gemini,
            // Contents have the roles `user` and `model` only.
            mid_system: false,
            developer_role: true,
            signed_calls: false,
        }
    }

    fn repair_rules(&self) -> RepairRules {
        RepairRules {
            call_ids: CallIds {
                max_bytes: 64,
                charset: Charset::Any,
            },
            user_first: true,
            user_last: true,
            calls_open_turns: true,
            ..RepairRules::pairs_only(Format::Gemini)
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
        let has = |name: &str| object.get(&[name]).is_some();
        let is_own = has("contents") || has("candidates");
        is_own.then_some(Evidence::new(
            Evidence::OWN_MEMBER + 2,
            "an object with `contents` or `candidates`",
        ))
    }

    fn detect_messages(&self, messages: &[Fields<'_>]) -> Option<Evidence> {
        let first = messages.first()?;
        first.get(&["parts"])?;
        // Messages of user interfaces have parts as well, but theirs have a `type`.
        let parts = member_objects(first, "parts");
        let is_untyped = |part: &Fields<'_>| part.get(&["type"]).is_none();
        parts.iter().all(is_untyped).then_some(Evidence::new(
            Evidence::SHARED_MEMBER + 1,
            "contents with `parts` that have no `type`",
        ))
    }

    fn overhead(&self) -> &'static Overhead {
        &OVERHEAD
    }

    fn silent_members(&self) -> &'static [&'static str] {
        &[
            "candidateCount",
            "enableAffectiveDialog",
            "frequencyPenalty",
            "labels",
            "logprobs",
            "mediaResolution",
            "modelArmorConfig",
            "presencePenalty",
            "responseLogprobs",
            "responseMimeType",
            "responseModalities",
            "safetySettings",
            "seed",
            "serviceTier",
            "store",
            "thinkingConfig",
            "toolConfig",
            "topK",
        ]
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

    fn sealed_members(&self) -> &'static [&'static str] {
        SEALED_MEMBERS
    }

    fn http(&self) -> Option<&'static HttpProfile> {
        Some(&HTTP)
    }

    fn error_body(&self, error: &ProxyError<'_>) -> String {
        proxy::error_body(error.status, error.message)
    }

    fn proxy(&self) -> Option<&'static dyn ProxyEdits> {
        Some(&Gemini)
    }

    fn text_response(&self, text: &str) -> Option<String> {
        let text = quote_json(text);
        Some(format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":{text}}}]}},"finishReason":"STOP","index":0}}],"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}},"modelVersion":"scripted"}}"#
        ))
    }
}
