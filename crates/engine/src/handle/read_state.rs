//! Reading a conversation's state at a node.

use contexture_store::{NodeState, PathEnd, StateRequest};

use super::conversation::Conversation;
use crate::error::EngineError;
use crate::state::{StateList, StateListEntry};

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
