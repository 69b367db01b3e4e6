//! A list stored as one entry of a node's state: a JSON array under a key.
//!
//! A change replaces the list that was read, and fails if somebody else changed it meanwhile.

use contexture_ir::ContentHash;
use contexture_store::{NodeState, StateChange, StateExpectation, StateKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::EngineError;

/// What such a list is of.
pub(crate) trait StateListEntry: Serialize + DeserializeOwned {
    /// Key of the state entry.
    const KEY: &'static str;
    /// The version of its JSON.
    const VERSION: u32;
}

/// The list at a node, and the hash by which a change notices another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateList<T> {
    pub(crate) entries: Vec<T>,
    hash: Option<ContentHash>,
}

impl<T> Default for StateList<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            hash: None,
        }
    }
}

impl<T: StateListEntry> StateList<T> {
    /// Reads what hangs off a node.
    pub(crate) fn from_state(state: &NodeState) -> Result<Self, EngineError> {
        let key = StateKey::new(T::KEY)?;
        let Some(entry) = state.root.get(&key) else {
            return Ok(Self::default());
        };
        if entry.version != T::VERSION {
            let why = format!("version {}, expected {}", entry.version, T::VERSION);
            return Err(stored_state_error::<T>(why));
        }
        // A redacted value is missing: what it named is gone with it.
        let bytes = state
            .loaded_value(&key)
            .map_or(&b"[]"[..], |bytes| bytes.as_ref());
        Ok(Self {
            entries: serde_json::from_slice(bytes)
                .map_err(|error| stored_state_error::<T>(error))?,
            hash: Some(entry.hash),
        })
    }

    /// The change that puts these entries in the place of those read.
    pub(crate) fn replacement_change(&self, entries: &[T]) -> Result<StateChange, EngineError> {
        let bytes = serde_json::to_vec(entries).map_err(|error| stored_state_error::<T>(error))?;
        // Without a hash there was no list: then there must be none when the change is stored.
        let expect = self
            .hash
            .map_or(StateExpectation::Absent, StateExpectation::Hash);
        Ok(
            StateChange::put_entry(StateKey::new(T::KEY)?, T::VERSION, bytes)
                .with_condition(expect),
        )
    }
}

fn stored_state_error<T: StateListEntry>(why: impl ToString) -> EngineError {
    EngineError::StoredState {
        key: T::KEY.to_owned(),
        reason: why.to_string(),
    }
}

/// A node's id as text.
pub(crate) mod node_id {
    use contexture_ir::NodeId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(id: &NodeId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<NodeId, D::Error> {
        let text = String::deserialize(from)?;
        let no_id = |_| D::Error::custom(format_args!("{text:?} is no node id"));
        text.parse().map_err(no_id)
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::NodeId;
    use contexture_store::{StateEntry, StateOp};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Id(#[serde(with = "node_id")] NodeId);

    impl StateListEntry for Id {
        const KEY: &'static str = "@ids";
        const VERSION: u32 = 2;
    }

    fn stored(version: u32, json: Option<&str>) -> NodeState {
        let hash = ContentHash::of(b"value");
        let mut state = NodeState::default();
        let key = StateKey::new("@ids").unwrap();
        state.root.insert(key, StateEntry { version, hash });
        state
            .values
            .extend(json.map(|json| (hash, json.as_bytes().into())));
        state
    }

    #[test]
    fn a_list_is_read_and_replaced() {
        let none = StateList::<Id>::from_state(&NodeState::default()).unwrap();
        assert_eq!(none, StateList::default());
        let id = NodeId::from_bytes([7; 16]);
        let change = none.replacement_change(&[Id(id)]).unwrap();
        assert_eq!(change.expect, StateExpectation::Absent);
        let StateOp::Put { value, version } = change.op else {
            panic!("expected a value")
        };
        let json = String::from_utf8(value.to_vec()).unwrap();
        assert_eq!(json, format!("[\"{id}\"]"));
        let read = StateList::<Id>::from_state(&stored(version, Some(&json))).unwrap();
        assert_eq!(read.entries, [Id(id)]);
        let again = read.replacement_change(&[]).unwrap();
        assert_eq!(
            again.expect,
            StateExpectation::Hash(ContentHash::of(b"value"))
        );
        // Redacted.
        let gone = StateList::<Id>::from_state(&stored(2, None)).unwrap();
        assert_eq!((gone.entries.len(), gone.hash.is_some()), (0, true));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let why = |version, json| {
            let error = StateList::<Id>::from_state(&stored(version, Some(json))).unwrap_err();
            assert_eq!(error.kind(), "damaged");
            error.to_string()
        };
        assert_eq!(why(3, "[]"), "stored state @ids: version 3, expected 2");
        assert!(why(2, "{").starts_with("stored state @ids: "));
        assert!(why(2, "[\"no\"]").contains("\"no\" is no node id"));
    }
}
