//! The full path of a branch. A handle keeps the path it has read, so that the next call reads only what is new.
//!
//! Nodes never change except by redaction, which is an event. So a cached path is good for a branch that continues it, if
//! no redaction happened since; anything else is read again from the first node.
//!
//! The state that hangs off a node is read here too, and is not kept.
//!
//! Not here: parts of paths, pages (`path`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_ir::NodeId;
use contexture_store::{
    EventKind, NodeState, PathEnd, ReadRequest, Span, StateRequest, read_all_pages,
};

use super::conversation::Conversation;
use super::info::load_info;
use crate::error::EngineError;
use crate::path::StoredPath;
use crate::state::{StateList, StateListEntry};

pub(crate) async fn load_path(
    chat: &Conversation,
    request: ReadRequest,
) -> Result<StoredPath, EngineError> {
    StoredPath::load(chat.store(), chat.owner(), chat.id(), request).await
}

/// A path, and the last event when it was read.
#[derive(Debug)]
pub(crate) struct CachedPath {
    pub(crate) path: Arc<StoredPath>,
    pub(crate) event: u64,
}

/// What a handle has read. Clones of the handle share it.
#[derive(Debug, Default)]
pub(crate) struct PathCache(Mutex<Option<CachedPath>>);

impl PathCache {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<CachedPath>> {
        // Either there is a whole path in it or none.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of its nodes' JSON.
    pub(crate) fn json_bytes(&self) -> usize {
        self.lock()
            .as_ref()
            .map_or(0, |cached| cached.path.json_bytes())
    }
}

/// New events looked through before reading the path again is as good.
const EVENTS: usize = 256;

/// The whole path to a branch's head.
///
/// The first time it is read; later in proportion to what is new.
pub(crate) async fn read_full_path(
    chat: &Conversation,
    at: PathEnd,
) -> Result<Arc<StoredPath>, EngineError> {
    // Taken out while it is checked: a concurrent call reads the path itself and does not wait.
    let cached = chat.path_cache().lock().take();
    if let Some(cached) = cached
        && let Some(grown) = extend_cached_path(chat, cached, &at).await?
    {
        let path = Arc::clone(&grown.path);
        *chat.path_cache().lock() = Some(grown);
        return Ok(path);
    }
    // An event after this one may be a redaction of what is about to be read.
    let event = load_info(chat).await?.events;
    let path = Arc::new(load_path(chat, ReadRequest::whole_path(at)).await?);
    *chat.path_cache().lock() = Some(CachedPath {
        path: Arc::clone(&path),
        event,
    });
    Ok(path)
}

/// The kept path with what is new; `None` if it is no beginning of the path, or no longer as it was read.
async fn extend_cached_path(
    chat: &Conversation,
    mut cached: CachedPath,
    at: &PathEnd,
) -> Result<Option<CachedPath>, EngineError> {
    let known = cached.path.nodes.len() as u64;
    let request = ReadRequest {
        at: at.clone(),
        span: Span::From(known + 1),
        limit: None,
    };
    let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
    let page = read_all_pages(store, owner, id, request).await?;
    // The branch was moved back, or it is another branch: the cached path says nothing about it.
    if page.depth < known {
        return Ok(None);
    }
    let end: Option<NodeId> = cached.path.head;
    let goes_on = match page.nodes.first() {
        Some(first) => first.parent == end && first.depth == known + 1,
        None => page.head == end,
    };
    if !goes_on {
        return Ok(None);
    }
    // Read after the nodes: a redaction of one of them that they do not show is later than this call.
    let events = store.list_events(owner, id, cached.event, EVENTS).await?;
    let redacts = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::NodeRedacted { .. } | EventKind::BytesRedacted { .. }
        )
    };
    // A full page may hide a redaction behind it; reading on would cost as much as reading the path.
    if events.len() == EVENTS || events.iter().any(|event| redacts(&event.kind)) {
        return Ok(None);
    }
    cached.event = events.last().map_or(cached.event, |event| event.seq);
    if !page.nodes.is_empty() {
        // Nobody else holds the path between two calls: nothing is copied then.
        Arc::make_mut(&mut cached.path).append_page(page)?;
    }
    Ok(Some(cached))
}

/// The entries whose keys begin so, with their values.
pub(crate) async fn load_state(
    chat: &Conversation,
    at: PathEnd,
    prefix: &str,
) -> Result<NodeState, EngineError> {
    let request = StateRequest {
        prefix: prefix.to_owned(),
        ..StateRequest::all_entries(at)
    };
    Ok(chat
        .store()
        .read_state(chat.owner(), chat.id(), request)
        .await?)
}

/// A list at a node.
pub(crate) async fn load_state_list<T: StateListEntry>(
    chat: &Conversation,
    at: PathEnd,
) -> Result<StateList<T>, EngineError> {
    StateList::from_state(&load_state(chat, at, T::KEY).await?)
}
