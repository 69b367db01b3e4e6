//! Bodies of requests as they came, where an engine keeps them ([`Engine::with_call_bodies`](crate::Engine::with_call_bodies)).
//!
//! A body repeats what the conversation holds, and what the request before it said. So each is stored with its call as a difference to
//! both: to the body before of the same branch, and to the items that came since. Every 64th, and one that nothing precedes, is a *key
//! frame*: a difference to the items of the whole path alone. What is in neither is stored with it, compressed; that is all of a body that is
//! too far from its items.
//!
//! Nodes never change, so the items that a difference refers to are there as long as the conversation is. A redaction changes them, and
//! removes all bodies of the conversation; a request whose history holds something redacted is not kept.
//!
//! Not here: where a body is stored and for how long (`contexture_store::Calls`), a request that is made again of its items
//! (`past_call`).

mod delta;
mod frame;

use std::sync::Arc;

use contexture_ir::{CallId, NodeId};
use contexture_store::{EventKind, PathEnd, ReadRequest};

use crate::call_bodies::delta::{decode_delta, encode_delta};
use crate::call_bodies::frame::{BodyFrame, body_check};
use crate::error::EngineError;
use crate::handle::{Conversation, LastBody, LastBodyKey, load_info, load_path, read_full_path};
use crate::path::StoredPath;

/// Frames from one key frame to the next.
const KEY_EVERY: u64 = 64;
/// Longest time between a key frame and the last body that is told by it, in milliseconds: who removes bodies after some time
/// keeps them so much longer, or the first of a chain would go before the last.
pub const BODY_CHAIN_MS: i64 = 60 * 60 * 1000;

/// A body to be stored with its call; see [`AnswerOptions::body`](crate::AnswerOptions).
#[derive(Clone, Debug)]
pub struct EncodedBody {
    pub(crate) bytes: Arc<[u8]>,
    /// The conversation's last event before its items were read.
    event: u64,
}

/// Encodes the body of a request whose history ends at a head; `None` if it is not to be kept.
pub(crate) async fn encode_body(
    chat: &Conversation,
    head: Option<NodeId>,
    call: CallId,
    body: &str,
) -> Result<Option<EncodedBody>, EngineError> {
    let engine = chat.engine();
    let (Some(last_bodies), Some(_)) = (engine.last_bodies(), engine.store().calls()) else {
        return Ok(None);
    };
    let without_secrets = engine.secrets().map(|secrets| secrets.redact(body));
    let body: &str = without_secrets.as_deref().unwrap_or(body);
    // An event after this one may be a redaction of what is about to be read.
    let event = load_info(chat).await?.events;
    let path = match head {
        Some(head) => read_full_path(chat, PathEnd::Node(head)).await?,
        None => Arc::default(),
    };
    if path.nodes.iter().any(|node| node.redacted_ms.is_some()) {
        return Ok(None);
    }
    let key = LastBodyKey::of(chat);
    let last = last_bodies.take(&key);
    let known = find_usable(chat, last, &path).await?;
    let nodes = known.as_ref().map_or(path.nodes.len(), |(_, nodes)| *nodes);
    let previous = known.map(|(last, _)| last);
    let base = base_bytes(previous.as_ref().map(|last| &*last.body), &path, nodes);
    let generation = previous.as_ref().map_or(0, |last| last.generation + 1);
    let now_ms = engine.now_ms();
    let frame = BodyFrame {
        generation,
        previous: previous.as_ref().map(|last| last.call),
        head,
        nodes: nodes as u64,
        length: body.len(),
        check: body_check(chat.owner(), body.as_bytes()),
        delta: &encode_delta(&base, body.as_bytes()),
    };
    let bytes = frame.to_bytes();
    if bytes.len() > engine.store().limits().call_body_bytes {
        return Ok(None);
    }
    // Remembered before the answer comes: whether it was stored is looked up by whoever goes on from it.
    let last = LastBody {
        call,
        head,
        generation,
        key_ms: previous.map_or(now_ms, |last| last.key_ms),
        body: body.into(),
    };
    last_bodies.put(key, last);
    Ok(Some(EncodedBody {
        bytes: bytes.into(),
        event,
    }))
}

/// Returns the body before, if this one may be told as a difference to it, and how many nodes came since.
async fn find_usable(
    chat: &Conversation,
    last: Option<LastBody>,
    path: &StoredPath,
) -> Result<Option<(LastBody, usize)>, EngineError> {
    let Some(last) = last else { return Ok(None) };
    let age_ms = chat.engine().now_ms().saturating_sub(last.key_ms);
    if last.generation + 1 >= KEY_EVERY || age_ms > BODY_CHAIN_MS {
        return Ok(None);
    }
    // It must be on the path: an edit or another branch has other items.
    let place = match last.head {
        None => Some(0),
        Some(head) => {
            let place = path.nodes.iter().rposition(|node| node.id == head);
            place.map(|place| place + 1)
        }
    };
    let Some(place) = place else { return Ok(None) };
    let Some(calls) = chat.store().calls() else {
        return Ok(None);
    };
    // No answer may have come to it, or it was redacted or removed since.
    let is_stored = calls.load_call_body(chat.owner(), last.call).await?;
    Ok(is_stored.map(|_| (last, path.nodes.len() - place)))
}

/// Returns what a body is compared with.
fn base_bytes(previous: Option<&str>, path: &StoredPath, nodes: usize) -> Vec<u8> {
    let mut base = Vec::from(previous.unwrap_or_default());
    let first = path.nodes.len().saturating_sub(nodes);
    for node in path.nodes.iter().skip(first) {
        base.extend_from_slice(node.json.as_bytes());
    }
    base
}

/// Returns the bytes to store of a body, unless something of its conversation was redacted since it was encoded.
pub(crate) async fn unless_redacted(
    chat: &Conversation,
    body: EncodedBody,
) -> Result<Option<Arc<[u8]>>, EngineError> {
    const EVENTS: usize = 256;
    let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
    let events = store.list_events(owner, id, body.event, EVENTS).await?;
    let redacts = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::NodeRedacted { .. } | EventKind::BytesRedacted { .. }
        )
    };
    // Behind a full page there may be one more.
    let is_clean = events.len() < EVENTS && !events.iter().any(|event| redacts(&event.kind));
    Ok(is_clean.then_some(body.bytes))
}

/// Reads the body of a call as it was kept; `None` if none is, or it cannot be read any more.
pub(crate) async fn load_body(
    chat: &Conversation,
    call: CallId,
) -> Result<Option<String>, EngineError> {
    let Some(calls) = chat.store().calls() else {
        return Ok(None);
    };
    // From the last to its key frame, then back.
    let (mut stored, mut next) = (Vec::new(), Some(call));
    while let Some(call) = next {
        let Some(bytes) = calls.load_call_body(chat.owner(), call).await? else {
            return Ok(None);
        };
        let Some(frame) = BodyFrame::from_bytes(&bytes) else {
            return Ok(None);
        };
        next = frame.previous;
        stored.push(bytes);
        if stored.len() as u64 > KEY_EVERY {
            return Ok(None);
        }
    }
    let mut body: Option<String> = None;
    for bytes in stored.iter().rev() {
        let Some(frame) = BodyFrame::from_bytes(bytes) else {
            return Ok(None);
        };
        let nodes = usize::try_from(frame.nodes).unwrap_or(usize::MAX);
        let path = match frame.head.filter(|_| nodes > 0) {
            Some(head) => {
                let request = ReadRequest::last_nodes(PathEnd::Node(head), frame.nodes);
                load_path(chat, request).await?
            }
            None => StoredPath::default(),
        };
        let base = base_bytes(body.as_deref(), &path, nodes);
        let text = decode_delta(&base, frame.delta, frame.length);
        let text = text.filter(|text| body_check(chat.owner(), text) == frame.check);
        let text = text.and_then(|text| String::from_utf8(text).ok());
        let Some(text) = text else { return Ok(None) };
        body = Some(text);
    }
    Ok(body)
}
