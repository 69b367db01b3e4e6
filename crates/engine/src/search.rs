//! Full-text search in stored conversations, and their stored events as a stream.
//!
//! Not here: what a query means (`contexture_store::rules::Query`); events of a running engine ([`crate::Events`]), of
//! which a slow watcher may miss some.

use std::sync::Arc;

use contexture_ir::Owner;
use contexture_store::rules::typed_request;
use contexture_store::{Event, EventTail, FollowOptions, SearchPage, SearchRequest, SearchScope};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::error::EngineError;
use crate::handle::{Conversation, Engine};

/// The stored events behind number `after` (0: from the first): what is there, then what comes, each once and in
/// order. It ends when the conversation is deleted.
pub(crate) fn follow_events(
    chat: &Conversation,
    after: u64,
) -> BoxStream<'static, Result<Event, EngineError>> {
    let options = FollowOptions {
        after,
        ..FollowOptions::default()
    };
    let store = Arc::clone(chat.engine().store());
    let tail = EventTail::open(store, chat.owner(), chat.id(), options);
    let events = tail.into_stream();
    events.map(|event| Ok(event?)).boxed()
}

/// Finds the texts of an owner's conversations that a request asks for, best first.
pub(crate) async fn search_owner(
    engine: &Engine,
    owner: &Owner,
    request: SearchRequest,
) -> Result<SearchPage, EngineError> {
    let search = engine.store().search().ok_or(EngineError::CannotSearch)?;
    Ok(search.search_nodes(owner, request).await?)
}

/// Searches this conversation on all its branches and returns the best 20 texts for what was typed
/// ([`typed_request`]). [`Engine::search`](crate::Engine::search) takes options.
pub(crate) async fn search_conversation(
    chat: &Conversation,
    query: &str,
) -> Result<SearchPage, EngineError> {
    let scope = SearchScope::Conversation(chat.id().clone());
    let request = typed_request(query, scope);
    search_owner(chat.engine(), chat.owner(), request).await
}
