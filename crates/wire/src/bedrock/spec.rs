//! What is special about Amazon Bedrock Converse, and the format's own names.

use contexture_ir::{Cancel, Fields, Transcript, Usage, quote_json};

use super::event_stream::EventStreamReader;
use super::prompt_cache::{self, CACHE_KEY, OUTLINE, OVERHEAD, TOOL_PATHS};
use super::stream::BedrockStream;
use super::{detect, encode, lift, proxy, request, response};
use crate::framing::{FrameReader, StreamFraming};
use crate::http_profile::{CallPath, HttpProfile, RootEvidence, RootRule};
use crate::model::chunk::{Chunk, Dialect, Envelope};
use crate::model::conversion::{Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::Evidence;
use crate::model::format::Format;
use crate::model::name_rule::NameRule;
use crate::model::overhead::Overhead;
use crate::model::paired_item::RoleRun;
use crate::model::prompt_cache::{CacheKeyRules, OutlineVisitor};
use crate::model::repair_rules::{CallIds, Charset, RepairRules};
use crate::model::structure::Structure;
use crate::outline::{member_at, visit_request};
use crate::proxy::ProxyEdits;
use crate::spec::{
    CacheMarkers, FormatHosts, FormatSpec, Identity, OptionMembers, ProxyError, RequestMembers,
};
use crate::stream::StreamParser;

/// The format's name, also the key of its fields in `ctx:wire`.
pub(super) const FORMAT: &str = Format::Bedrock.as_str();
/// The `format` of reasoning that came through Bedrock, whoever made the model.
pub(super) const FAMILY: &str = "amazon-bedrock-v1";
/// How the `format` of opaque reasoning begins that Bedrock can read back.
pub(super) const MAKER: &str = "amazon-bedrock";
/// The key under which a message's own unknown fields are stored on its first item.
pub(super) const MESSAGE: &str = "(message)";
/// The longest call id, in bytes.
pub(super) const MAX_ID_BYTES: usize = 64;

/// The names of tools that Bedrock accepts.
pub(super) const NAME_RULE: NameRule = NameRule {
    max_bytes: 64,
    marks: "_-",
    letter_first: false,
};

/// How Bedrock arranges a history: one message per run, compactions as the user's text. "A conversation must alternate
/// between user and assistant roles": langchain-ai/langchain-aws#130, Portkey-AI/gateway#748.
pub(super) const STRUCTURE: Structure = Structure {
    user_compactions: true,
    chat_calls: false,
    custom_calls: false,
    merged_parts: Some("content"),
    alternating_turns: true,
    model_markers: true,
    head_markers: true,
    lead_markers: false,
};

/// Where a request says what becomes of thinking behind another history than the one it was answered to.
const BLOCK_BINDING: [&str; 4] = [
    "additionalModelRequestFields",
    "thinking",
    "block_binding",
    "prefix_mismatch_behavior",
];

const IDENTITY: Identity = Identity {
    catalogue_provider: Some("amazon-bedrock"),
    otel_provider: "aws.bedrock",
    extension_slug: FORMAT,
    bare_extensions: false,
    opaque_maker: Some(MAKER),
    // It hosts models of many makers, under names of its own.
    hosts: FormatHosts::Any,
};

pub(super) const MEMBERS: RequestMembers = RequestMembers {
    instructions: &["system"],
    history: "messages",
    content: "content",
    compiled: &[&["toolConfig"], &["system"], &["messages"]],
    tool_choice: &["toolConfig"],
    usage: "usage",
    // A stream is asked for in the address.
    stream: &[],
    provider_history: &[],
};

const OPTIONS: OptionMembers = OptionMembers {
    holder: Some("inferenceConfig"),
    output_limit: &["maxTokens"],
    temperature: "temperature",
    top_p: "topP",
};

const HTTP: HttpProfile = HttpProfile {
    upstream: "bedrock",
    protocols: "Converse",
    // The address depends on the customer's region.
    upstream_url: None,
    roots: &[RootRule {
        under: "/model",
        evidence: RootEvidence::Path,
    }],
    base_url: "https://bedrock-runtime.us-east-1.amazonaws.com",
    base_url_variables: &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
    api_key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
    key_header: "authorization",
    key_prefix: "Bearer ",
    // Clients with AWS credentials sign the body.
    request_signature: Some("AWS4-HMAC-SHA256"),
    version_header: None,
    path: CallPath::Model {
        prefix: &["model"],
        separator: '/',
        whole: "converse",
        stream: "converse-stream",
        stream_query: "",
    },
    framing: StreamFraming::AwsEventStream,
};

/// The implementation of [`FormatSpec`] for Amazon Bedrock Converse.
#[derive(Debug)]
pub(crate) struct Bedrock;

impl FormatSpec for Bedrock {
    fn format(&self) -> Format {
        Format::Bedrock
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
        Some(Box::new(BedrockStream::default()))
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            format: Format::Bedrock,
            // Only few models accept a system message inside the history.
            mid_system: false,
            developer_role: true,
            signed_calls: false,
        }
    }

    fn repair_rules(&self) -> RepairRules {
        RepairRules {
            call_ids: CallIds {
                max_bytes: MAX_ID_BYTES,
                charset: Charset::Plain,
            },
            user_first: true,
            // Most models refuse a prefill of their answer.
            user_last: true,
            ..RepairRules::pairs_only(Format::Bedrock)
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

    fn tool_paths(&self) -> &'static [&'static [&'static str]] {
        TOOL_PATHS
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
            "performanceConfig",
            "requestMetadata",
            "serviceTier",
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

    fn long_cache_write(&self, usage: &Usage) -> Option<u64> {
        prompt_cache::long_cache_write(usage)
    }

    fn markers(&self) -> Option<&'static dyn CacheMarkers> {
        Some(&Bedrock)
    }

    fn http(&self) -> Option<&'static HttpProfile> {
        Some(&HTTP)
    }

    fn frame_reader(&self) -> Box<dyn FrameReader> {
        Box::new(EventStreamReader::default())
    }

    fn drops_edited_thinking(&self, request: &Fields<'_>) -> bool {
        let behavior = member_at(request, &BLOCK_BINDING);
        behavior.is_some_and(|behavior| behavior.get() == r#""drop_block""#)
    }

    fn error_body(&self, error: &ProxyError<'_>) -> String {
        proxy::error_body(error.message)
    }

    fn error_header(&self, error: &ProxyError<'_>) -> Option<(&'static str, &'static str)> {
        Some(("x-amzn-errortype", proxy::error_type(error.status)))
    }

    fn proxy(&self) -> Option<&'static dyn ProxyEdits> {
        Some(&Bedrock)
    }

    fn text_response(&self, text: &str) -> Option<String> {
        let text = quote_json(text);
        Some(format!(
            r#"{{"output":{{"message":{{"role":"assistant","content":[{{"text":{text}}}]}}}},"stopReason":"end_turn","usage":{{"inputTokens":1,"outputTokens":1,"totalTokens":2}},"metrics":{{"latencyMs":1}}}}"#
        ))
    }
}
