//! Reading a conversation's state at a node, and the fragments that a program set on the handle.

use contexture_ir::Fragment;
use contexture_store::{NodeState, PathEnd, StateChange, StateRequest};

use super::conversation::Conversation;
use crate::error::EngineError;
use crate::state::{
    INSTRUCTIONS_PREFIX, Instructions, StateList, StateListEntry, fragments_change,
    require_data_fragments,
};

/// Replaces the handle's fragments, which the model reads before the history.
pub(crate) fn set_fragments(
    chat: &Conversation,
    fragments: impl IntoIterator<Item = Fragment>,
) -> Result<(), EngineError> {
    let fragments: Vec<Fragment> = fragments.into_iter().collect();
    require_data_fragments(&fragments)?;
    chat.lock_state().fragments = Some(fragments);
    Ok(())
}

/// Adds fragments after those of the handle.
pub(crate) fn add_fragments(
    chat: &Conversation,
    fragments: impl IntoIterator<Item = Fragment>,
) -> Result<(), EngineError> {
    let fragments: Vec<Fragment> = fragments.into_iter().collect();
    require_data_fragments(&fragments)?;
    chat.lock_state()
        .fragments
        .get_or_insert_default()
        .extend(fragments);
    Ok(())
}

/// Removes the handle's fragments with this id and returns their number.
pub(crate) fn remove_fragments(chat: &Conversation, id: &str) -> usize {
    let mut local = chat.lock_state();
    let Some(fragments) = &mut local.fragments else {
        return 0;
    };
    let before = fragments.len();
    fragments.retain(|fragment| fragment.id.as_deref() != Some(id));
    before - fragments.len()
}

/// Returns the handle's fragments; empty until some are set.
pub(crate) fn list_fragments(chat: &Conversation) -> Vec<Fragment> {
    chat.lock_state().fragments.clone().unwrap_or_default()
}

/// What is said before the history: the handle's fragments if any were set, else what the path
/// carries; imported leading messages in any case.
pub(crate) async fn instructions_at_position(
    chat: &Conversation,
    at: PathEnd,
) -> Result<Instructions, EngineError> {
    instructions_from_state(chat, &load_state(chat, at, INSTRUCTIONS_PREFIX).await?)
}

/// The same, of a state that was read.
pub(crate) fn instructions_from_state(
    chat: &Conversation,
    state: &NodeState,
) -> Result<Instructions, EngineError> {
    let mut instructions = Instructions::from_state(state)?;
    // What the program set on this handle wins over what an earlier append recorded on the path.
    if let Some(fragments) = chat.lock_state().fragments.clone() {
        instructions.fragments = fragments;
    }
    Ok(instructions)
}

/// The state change that goes with every append of this handle.
pub(crate) fn fragment_change(chat: &Conversation) -> Result<Option<StateChange>, EngineError> {
    chat.lock_state()
        .fragments
        .as_deref()
        .map(fragments_change)
        .transpose()
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
