//! A request to a model, stored in its conversation.

use std::collections::BTreeMap;

use bytes::Bytes;
use contexture::ir::{ConversationId, Transcript};
use contexture::layers::builtin::Skills;
use contexture::{Engine, Incoming, Ingested, Kind, Owner, lift};
use serde_json::value::RawValue;

use crate::panics::PANICKED;
use crate::problem::chain;
use crate::proxy::behind::Room;
use crate::proxy::call::Call;
use crate::proxy::came::{Came, Unread};
use crate::proxy::wishes::Wishes;

/// Fields that say for whom a request is.
const USERS: [&str; 3] = ["safety_identifier", "user", "metadata.user_id"];
/// A field that parts histories without saying whose they are.
const CACHE_KEY: &str = "prompt_cache_key";

/// What is listened to, and for whom.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) call: Call,
    /// As it came: by this it is found again, when it comes again.
    pub(crate) came: Came,
    /// Its text without secrets, if it had any.
    pub(crate) redacted: Option<Bytes>,
    pub(crate) wishes: Wishes,
    /// The field of the body that names the conversation.
    pub(crate) conversation_from: Option<String>,
    /// Whether a conversation that is made belongs to the end user, with what is kept for them.
    pub(crate) by_user: bool,
    /// Skills that are listed to the model.
    pub(crate) skills: Option<Skills>,
    /// Its room among what waits to be stored; without, it is not.
    pub(crate) room: Option<Room>,
}

/// A request that is stored.
#[derive(Debug)]
pub(crate) struct Stored {
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
pub(crate) struct Read {
    pub(crate) transcript: Transcript,
    /// Its text, unpacked.
    pub(crate) body: String,
    said: Said,
}

impl Asked {
    /// Reads a body. Megabytes of JSON are read without holding up others.
    async fn read(&self, body: Bytes) -> Result<Read, Miss> {
        let call = self.call.clone();
        let read = tokio::task::spawn_blocking(move || read(&call, body)).await;
        read.unwrap_or_else(|_| Err(Miss::panicked()))
    }
}

impl Read {
    /// Whether it goes on from a history that the provider holds.
    pub(crate) fn is_elsewhere(&self) -> bool {
        let names = [
            "previous_response_id",
            "conversation",
            "cachedContent",
            "cached_content",
        ];
        names.iter().any(|name| self.field(name).is_some())
    }

    /// A field of its body, if that says anything.
    pub(crate) fn field(&self, name: &str) -> Option<&RawValue> {
        let raw = self.said.0.get(name)?;
        (raw.get() != "null").then_some(raw)
    }
}

/// Why a request or its answer is not stored. It has been passed on all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Miss {
    /// What failed, one word: for headers and figures.
    pub(crate) what: &'static str,
    /// Why, for the log and for who asks.
    pub(crate) why: String,
}

impl Miss {
    pub(crate) fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self {
            what,
            why: why.into(),
        }
    }

    pub(crate) fn of(what: &'static str, error: &dyn std::error::Error) -> Self {
        Self::new(what, chain(error))
    }

    /// What a panic says may be of what was sent.
    pub(crate) fn panicked() -> Self {
        Self::new("fault", PANICKED)
    }
}

/// The texts that a body has in some of its fields: whose it is.
#[derive(Debug, Default)]
struct Said(BTreeMap<String, Box<RawValue>>);

impl Said {
    /// The text in a field, or in a field of an object, `metadata.user_id` say.
    fn text(&self, field: &str) -> Option<String> {
        let (field, inner) = match field.split_once('.') {
            Some((field, inner)) => (field, Some(inner)),
            None => (field, None),
        };
        let raw = self.0.get(field)?.get();
        match inner {
            None => serde_json::from_str(raw).ok(),
            Some(inner) => Self(serde_json::from_str(raw).ok()?).text(inner),
        }
    }
}

/// Stores what a request says, where it belongs.
///
/// # Errors
/// It cannot be read, or cannot be stored.
pub(crate) async fn ingest(asked: &mut Asked) -> Result<(Stored, Read), Miss> {
    let body = asked.came.unpacked_in(asked.room.as_mut()).await;
    let body = body.map_err(|unread| match unread {
        Unread::NoRoom => Miss::of("overload", &unread),
        _ => Miss::of("request", &unread),
    })?;
    let asked = &*asked;
    let read = asked.read(body).await?;
    let said = &read.said;
    let conversation = asked.wishes.conversation.clone();
    let conversation = conversation.or_else(|| named(asked, said));
    let previous = said.text("previous_response_id");
    let partition = partition(&asked.wishes, said);
    let user = user(&asked.wishes, said);
    let most = asked.engine.store().limits().title_bytes;
    let secrets = asked.engine.secrets();
    let is_plain = |name: &&str| secrets.is_none_or(|secrets| secrets.redact(name) == **name);
    let resource = user
        .as_deref()
        .filter(|name| asked.by_user && name.len() <= most && is_plain(name));
    let incoming = Incoming {
        conversation: conversation.as_ref(),
        branch: asked.wishes.branch.as_ref(),
        previous_response: previous.as_deref(),
        partition: partition.as_deref(),
        resource,
        ..Incoming::new(&read.transcript)
    };
    let ingested = asked.engine.ingest(&asked.owner, incoming).await;
    let ingested = ingested.map_err(|error| Miss::of("store", &error))?;
    let read = match &asked.redacted {
        Some(body) => asked.read(body.clone()).await?,
        None => read,
    };
    let stored = Stored {
        ingested,
        user,
        skills: asked.skills.clone(),
        model: read.transcript.model.clone(),
    };
    Ok((stored, read))
}

fn read(call: &Call, body: Bytes) -> Result<Read, Miss> {
    let body = String::from_utf8(body.into()).map_err(|error| Miss::of("request", &error))?;
    let lifted = lift(call.format, &body).map_err(|error| Miss::of("request", &error))?;
    if lifted.kind != Kind::Request {
        return Err(Miss::new("request", "it is no request to a model"));
    }
    let mut transcript = lifted.transcript;
    if transcript.model.is_none() {
        transcript.model.clone_from(&call.model);
    }
    let said = Said(serde_json::from_str(&body).unwrap_or_default());
    Ok(Read {
        transcript,
        body,
        said,
    })
}

/// The conversation that a field of the body names.
fn named(asked: &Asked, said: &Said) -> Option<ConversationId> {
    let name = said.text(asked.conversation_from.as_deref()?)?;
    name.parse().ok()
}

/// What keeps histories apart that begin alike: for whom they are.
fn partition(wishes: &Wishes, said: &Said) -> Option<String> {
    let fields = USERS.iter().chain([&CACHE_KEY]);
    let fields = fields.filter_map(|field| said.text(field));
    let parts: Vec<String> = wishes.user.clone().into_iter().chain(fields).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The end user that a request is for.
fn user(wishes: &Wishes, said: &Said) -> Option<String> {
    let mut fields = USERS.iter().filter_map(|field| said.text(field));
    wishes.user.clone().or_else(|| fields.next())
}
