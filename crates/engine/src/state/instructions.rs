//! Instructions: what stands before the history.
//!
//! Two entries hang off the path, so they rewind with it: the fragments a program set, and the leading messages of an
//! imported history. They are separate because they are lowered differently: fragments are rendered, messages keep their
//! provider's blocks.

use contexture_ir::{Body, Fragment, FragmentRegistry, Item, Message, Raw, fragments_from_value};
use contexture_store::{NodeState, StateChange, StateExpectation, StateKey};

use crate::error::EngineError;

/// What the keys of the layer's state begin with.
pub(crate) const INSTRUCTIONS_PREFIX: &str = "path/instructions/";

const FRAGMENTS: &str = "path/instructions/fragments";

const MESSAGES: &str = "path/instructions/messages";

const VERSION: u32 = 1;

/// What stands before the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instructions {
    /// Leading messages of an imported history.
    pub messages: Vec<Message>,
    /// Fragments, in the order they were set.
    pub fragments: Vec<Fragment>,
}

impl Instructions {
    /// Reads what hangs off a node.
    pub(crate) fn from_state(state: &NodeState) -> Result<Self, EngineError> {
        let text = |name: &'static str| -> Result<Option<String>, EngineError> {
            let Some(bytes) = state.loaded_value(&state_key(name)?) else {
                return Ok(None);
            };
            let text = String::from_utf8(bytes.to_vec());
            text.map(Some)
                .map_err(|_| stored_state_error(name, "not UTF-8"))
        };
        let mut read = Self::default();
        if let Some(json) = text(FRAGMENTS)? {
            let value = serde_json::from_str(&json)
                .map_err(|_| stored_state_error(FRAGMENTS, "not JSON"))?;
            read.fragments = fragments_from_value(value, &FragmentRegistry::new())?;
        }
        if let Some(json) = text(MESSAGES)? {
            let items = Item::parse_all(&json)
                .map_err(|error| stored_state_error(MESSAGES, &error.to_string()))?;
            read.messages = items
                .into_iter()
                .filter_map(|item| match item {
                    Item::Message(message) => Some(message),
                    _ => None,
                })
                .collect();
        }
        Ok(read)
    }
}

/// The change that records `fragments` as the current list, replacing it. Those that do not persist
/// are left out.
pub(crate) fn fragments_change(fragments: &[Fragment]) -> Result<StateChange, EngineError> {
    // The whole list is replaced, so that a fragment that was removed is gone at this node.
    let kept = fragments.iter().filter(|fragment| fragment.persist);
    let json: Vec<serde_json::Value> = kept.map(Fragment::to_json).collect::<Result<_, _>>()?;
    Ok(StateChange::put_entry(
        state_key(FRAGMENTS)?,
        VERSION,
        encode_json(&json)?,
    ))
}

/// As [`fragments_change`], of the list that `state` holds and of no other.
pub(crate) fn fragments_replacement(
    state: &NodeState,
    fragments: &[Fragment],
) -> Result<StateChange, EngineError> {
    let stored = state.root.get(&state_key(FRAGMENTS)?);
    let expect = stored.map_or(StateExpectation::Absent, |entry| {
        StateExpectation::Hash(entry.hash)
    });
    Ok(fragments_change(fragments)?.with_condition(expect))
}

/// The change that records an imported history's leading messages.
pub(crate) fn messages_change(messages: &[Message]) -> Result<StateChange, EngineError> {
    let items: Vec<Item> = messages.iter().cloned().map(Item::from).collect();
    Ok(StateChange::put_entry(
        state_key(MESSAGES)?,
        VERSION,
        encode_json(&items)?,
    ))
}

/// Refuses fragments that carry messages: those belong to the history.
pub(crate) fn require_data_fragments(fragments: &[Fragment]) -> Result<(), EngineError> {
    match fragments
        .iter()
        .find(|fragment| !matches!(fragment.body, Body::Data(_)))
    {
        Some(fragment) => Err(EngineError::NotData {
            name: fragment.name.clone(),
        }),
        None => Ok(()),
    }
}

pub(super) fn encode_json(value: &impl serde::Serialize) -> Result<Vec<u8>, EngineError> {
    Ok(Raw::from_value(value)?.get().as_bytes().to_vec())
}

pub(super) fn state_key(name: &'static str) -> Result<StateKey, EngineError> {
    Ok(StateKey::new(name)?)
}

pub(super) fn stored_state_error(key: &str, why: &str) -> EngineError {
    EngineError::StoredState {
        key: key.to_owned(),
        reason: why.to_owned(),
    }
}
