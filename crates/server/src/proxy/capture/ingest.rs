//! A request to a model, stored in its conversation.

use std::collections::BTreeMap;

use bytes::Bytes;
use contexture::ir::{ConversationId, Transcript};
use contexture::layers::builtin::Skills;
use contexture::{DocumentKind, Engine, IngestRequest, Ingested, Owner, lift};
use serde_json::value::RawValue;

use crate::proxy::control_headers::ControlHeaders;
use crate::proxy::failure::ProxyFailure;
use crate::proxy::request_body::{RequestBody, UnreadableBody};
use crate::proxy::route::model_call::ModelEndpoint;
use crate::state::store_queue::QueuePermit;

/// Fields that say for whom a request is.
const END_USER_FIELDS: [&str; 3] = ["safety_identifier", "user", "metadata.user_id"];
/// A field that parts histories without saying whose they are.
const CACHE_KEY: &str = "prompt_cache_key";

/// What is listened to, and for whom.
#[derive(Debug)]
pub(crate) struct CaptureRequest {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) endpoint: ModelEndpoint,
    /// As it came: by this it is found again, when it comes again.
    pub(crate) body: RequestBody,
    /// Its text without secrets, if it had any.
    pub(crate) redacted: Option<Bytes>,
    pub(crate) control_headers: ControlHeaders,
    /// The field of the body that names the conversation.
    pub(crate) conversation_from: Option<String>,
    /// Whether a conversation that is made belongs to the end user, with what is kept for them.
    pub(crate) by_user: bool,
    /// Skills that are listed to the model.
    pub(crate) skills: Option<Skills>,
    /// Its room among what waits to be stored; without, it is not.
    pub(crate) queue_permit: Option<QueuePermit>,
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

/// A request that was read.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    pub(crate) transcript: Transcript,
    /// Its text, unpacked.
    pub(crate) body: String,
    fields: BodyFields,
}

impl CaptureRequest {
    /// Reads a body. Megabytes of JSON are read without holding up others.
    async fn parse_body(&self, body: Bytes) -> Result<ParsedRequest, ProxyFailure> {
        let call = self.endpoint.clone();
        let read = tokio::task::spawn_blocking(move || parse_request(&call, body)).await;
        read.unwrap_or_else(|_| Err(ProxyFailure::from_panic()))
    }
}

impl ParsedRequest {
    /// Whether it goes on from a history that the provider holds.
    pub(crate) fn has_provider_history(&self) -> bool {
        let names = [
            "previous_response_id",
            "conversation",
            "cachedContent",
            "cached_content",
        ];
        names.iter().any(|name| self.body_field(name).is_some())
    }

    /// A field of its body, if that says anything.
    pub(crate) fn body_field(&self, name: &str) -> Option<&RawValue> {
        let raw = self.fields.0.get(name)?;
        (raw.get() != "null").then_some(raw)
    }
}

/// The texts that a body has in some of its fields: whose it is.
#[derive(Debug, Default)]
struct BodyFields(BTreeMap<String, Box<RawValue>>);

impl BodyFields {
    /// The text in a field, or in a field of an object, `metadata.user_id` say.
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

/// Stores what a request says, where it belongs.
///
/// # Errors
/// It cannot be read, or cannot be stored.
pub(crate) async fn store_request(
    asked: &mut CaptureRequest,
) -> Result<(IngestedRequest, ParsedRequest), ProxyFailure> {
    let body = asked
        .body
        .decompress_within(asked.queue_permit.as_mut())
        .await;
    let body = body.map_err(|unread| match unread {
        UnreadableBody::NoRoom => ProxyFailure::from_error("overload", &unread),
        _ => ProxyFailure::from_error("request", &unread),
    })?;
    let asked = &*asked;
    let read = asked.parse_body(body).await?;
    let said = &read.fields;
    let conversation = asked.control_headers.conversation.clone();
    let conversation = conversation.or_else(|| named_conversation(asked, said));
    let previous = said.field_text("previous_response_id");
    let partition = history_partition(&asked.control_headers, said);
    let user = end_user(&asked.control_headers, said);
    let most = asked.engine.store().limits().title_bytes;
    let secrets = asked.engine.secrets();
    let is_plain = |name: &&str| secrets.is_none_or(|secrets| secrets.redact(name) == **name);
    let resource = user
        .as_deref()
        .filter(|name| asked.by_user && name.len() <= most && is_plain(name));
    let incoming = IngestRequest {
        conversation: conversation.as_ref(),
        branch: asked.control_headers.branch.as_ref(),
        previous_response: previous.as_deref(),
        partition: partition.as_deref(),
        resource,
        ..IngestRequest::new(&read.transcript)
    };
    let ingested = asked.engine.ingest(&asked.owner, incoming).await;
    let ingested = ingested.map_err(|error| ProxyFailure::from_error("store", &error))?;
    let read = match &asked.redacted {
        Some(body) => asked.parse_body(body.clone()).await?,
        None => read,
    };
    let stored = IngestedRequest {
        ingested,
        user,
        skills: asked.skills.clone(),
        model: read.transcript.model.clone(),
    };
    Ok((stored, read))
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
    if transcript.model.is_none() {
        transcript.model.clone_from(&call.model);
    }
    let said = BodyFields(serde_json::from_str(&body).unwrap_or_default());
    Ok(ParsedRequest {
        transcript,
        body,
        fields: said,
    })
}

/// The conversation that a field of the body names.
fn named_conversation(asked: &CaptureRequest, said: &BodyFields) -> Option<ConversationId> {
    let name = said.field_text(asked.conversation_from.as_deref()?)?;
    name.parse().ok()
}

/// What keeps histories apart that begin alike: for whom they are.
fn history_partition(wishes: &ControlHeaders, said: &BodyFields) -> Option<String> {
    let fields = END_USER_FIELDS.iter().chain([&CACHE_KEY]);
    let fields = fields.filter_map(|field| said.field_text(field));
    let parts: Vec<String> = wishes.user.clone().into_iter().chain(fields).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The end user that a request is for.
fn end_user(wishes: &ControlHeaders, said: &BodyFields) -> Option<String> {
    let mut fields = END_USER_FIELDS
        .iter()
        .filter_map(|field| said.field_text(field));
    wishes.user.clone().or_else(|| fields.next())
}
