//! Ingest: a request to a model, matched to its conversation and stored there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use contexture::engine::{BackgroundSummary, Exchange, IngestRequest, Ingested};
use contexture::ir::{ConversationId, Transcript};
use contexture::layers::builtin::Skills;
use contexture::wire::DocumentKind;
use contexture::{Engine, Format, Owner, lift};
use serde_json::value::RawValue;

use crate::proxy::control_headers::ControlHeaders;
use crate::proxy::failure::ProxyFailure;
use crate::proxy::request_body::{RequestBody, UnreadableBody};
use crate::proxy::route::model_call::ModelEndpoint;
use crate::state::body_memory::{MemoryError, MemoryLease, estimate_work_bytes};

/// Fields that name the end user, first match wins.
const END_USER_FIELDS: [&str; 3] = ["safety_identifier", "user", "metadata.user_id"];
/// A field that keeps histories apart without naming anybody.
const CACHE_KEY: &str = "prompt_cache_key";

/// A request that is captured, and for whom.
#[derive(Debug)]
pub(crate) struct CaptureRequest {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) endpoint: ModelEndpoint,
    /// With its secrets: the hashes by which a history is found again are those of what the client sends.
    pub(crate) body: Arc<RequestBody>,
    /// Its text without secrets, if it had any.
    pub(crate) redacted: Option<Bytes>,
    pub(crate) control_headers: ControlHeaders,
    /// The field of the body that names the conversation.
    pub(crate) conversation_from: Option<String>,
    /// Whether a new conversation belongs to the end user, with the notes kept for them.
    pub(crate) by_user: bool,
    /// Skills that are listed to the model.
    pub(crate) skills: Option<Skills>,
    /// Who writes summaries of its conversation in the background, if anybody.
    pub(crate) summary: Option<BackgroundSummary>,
    /// Whether something waits for it to be stored: a rewrite, or the client's answer.
    pub(crate) is_awaited: bool,
    /// Whether its host refuses what is too long.
    pub(crate) refuses_overflow: bool,
    /// Memory for the work on it; without any it is not stored.
    pub(crate) memory: Result<MemoryLease, MemoryError>,
    /// Over when the answer is stored, or will not be.
    pub(crate) exchange: Arc<Exchange>,
}

/// A request that is stored.
#[derive(Debug)]
pub(crate) struct IngestedRequest {
    pub(crate) ingested: Ingested,
    /// The end user it is for.
    pub(crate) user: Option<String>,
    /// Skills that are listed to the model.
    pub(crate) skills: Option<Skills>,
    /// The model that was asked.
    pub(crate) model: Option<String>,
}

/// A request that was parsed.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    pub(crate) transcript: Transcript,
    /// Its text, decompressed.
    pub(crate) body: String,
    fields: BodyFields,
}

impl CaptureRequest {
    /// Matches a request to its conversation, and stores what is new of it there.
    async fn ingest(
        &self,
        parsed: &ParsedRequest,
        user: Option<&str>,
    ) -> Result<Ingested, ProxyFailure> {
        let fields = &parsed.fields;
        let conversation = self.control_headers.conversation.clone();
        let conversation = conversation.or_else(|| named_conversation(self, fields));
        let previous = fields.field_text("previous_response_id");
        let partition = history_partition(&self.control_headers, fields);
        let max_bytes = self.engine.store().limits().title_bytes;
        let secrets = self.engine.secrets();
        // A user name with a secret in it would be stored unredacted: such a conversation belongs to nobody in particular.
        let is_plain = |name: &&str| secrets.is_none_or(|secrets| secrets.redact(name) == **name);
        let resource =
            user.filter(|name| self.by_user && name.len() <= max_bytes && is_plain(name));
        let incoming = IngestRequest {
            conversation: conversation.as_ref(),
            branch: self.control_headers.branch.as_ref(),
            previous_response: previous.as_deref(),
            partition: partition.as_deref(),
            resource,
            exchange: Some(&self.exchange),
            ..IngestRequest::new(&parsed.transcript)
        };
        let ingested = self.engine.ingest(&self.owner, incoming).await;
        ingested.map_err(|error| ProxyFailure::from_error("store", &error))
    }
}

impl ParsedRequest {
    /// Whether it continues a history that the provider holds.
    pub(crate) fn has_provider_history(&self, format: Format) -> bool {
        let members = format.spec().members();
        let names = members.map_or(&[][..], |members| members.provider_history);
        names.iter().any(|name| self.body_field(name).is_some())
    }

    /// Returns a field of its body that is neither missing nor null.
    pub(crate) fn body_field(&self, name: &str) -> Option<&RawValue> {
        let raw = self.fields.0.get(name)?;
        (raw.get() != "null").then_some(raw)
    }
}

/// The top-level fields of a body, for those that name a user or a conversation.
#[derive(Debug, Default)]
struct BodyFields(BTreeMap<String, Box<RawValue>>);

impl BodyFields {
    /// Returns the text in a field, or in a field of an object: `metadata.user_id`, say.
    fn field_text(&self, field: &str) -> Option<String> {
        let (field, inner) = match field.split_once('.') {
            Some((field, inner)) => (field, Some(inner)),
            None => (field, None),
        };
        let raw = self.0.get(field)?.get();
        match inner {
            None => serde_json::from_str(raw).ok(),
            Some(inner) => Self(serde_json::from_str(raw).ok()?).field_text(inner),
        }
    }
}

/// Stores a request in the conversation it belongs to, and returns what it says.
///
/// # Errors
/// It cannot be read, or cannot be stored.
pub(crate) async fn store_request(
    request: &mut CaptureRequest,
) -> Result<(IngestedRequest, ParsedRequest), ProxyFailure> {
    let overload = |error: &MemoryError| ProxyFailure::from_error("overload", error);
    let memory = request.memory.as_mut().map_err(|error| overload(error))?;
    let body = request
        .body
        .decompress()
        .await
        .map_err(|unread| match unread {
            UnreadableBody::NoMemory(error) => overload(error),
            _ => ProxyFailure::from_error("request", unread),
        })?;
    memory
        .grow_to(estimate_work_bytes(body))
        .await
        .map_err(|error| overload(&error))?;
    let body = body.clone();
    let request = &*request;
    let parsed = parse_request(&request.endpoint, body)?;
    let user = end_user(&request.control_headers, &parsed.fields);
    let ingested = request.ingest(&parsed, user.as_deref()).await?;
    // Matched by what the client sends, rewritten from what may leave the server.
    let parsed = match &request.redacted {
        Some(body) => parse_request(&request.endpoint, body.clone())?,
        None => parsed,
    };
    let stored = IngestedRequest {
        ingested,
        user,
        skills: request.skills.clone(),
        model: parsed.transcript.model.clone(),
    };
    Ok((stored, parsed))
}

fn parse_request(call: &ModelEndpoint, body: Bytes) -> Result<ParsedRequest, ProxyFailure> {
    let body = String::from_utf8(body.into())
        .map_err(|error| ProxyFailure::from_error("request", &error))?;
    let lifted =
        lift(call.format, &body).map_err(|error| ProxyFailure::from_error("request", &error))?;
    if lifted.kind != DocumentKind::Request {
        return Err(ProxyFailure::new("request", "it is no request to a model"));
    }
    let mut transcript = lifted.transcript;
    // Gemini's clients name the model in the path and not in the body.
    if transcript.model.is_none() {
        transcript.model.clone_from(&call.model);
    }
    let fields = BodyFields(serde_json::from_str(&body).unwrap_or_default());
    Ok(ParsedRequest {
        transcript,
        body,
        fields,
    })
}

/// Returns the conversation that the configured field of the body names.
fn named_conversation(request: &CaptureRequest, fields: &BodyFields) -> Option<ConversationId> {
    let name = fields.field_text(request.conversation_from.as_deref()?)?;
    name.parse().ok()
}

/// Returns what keeps apart histories that begin alike: whom they are for.
fn history_partition(headers: &ControlHeaders, body: &BodyFields) -> Option<String> {
    let fields = END_USER_FIELDS.iter().chain([&CACHE_KEY]);
    let fields = fields.filter_map(|field| body.field_text(field));
    let parts: Vec<String> = headers.user.clone().into_iter().chain(fields).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// Returns the end user that a request is for.
fn end_user(headers: &ControlHeaders, body: &BodyFields) -> Option<String> {
    let mut fields = END_USER_FIELDS
        .iter()
        .filter_map(|field| body.field_text(field));
    headers.user.clone().or_else(|| fields.next())
}
