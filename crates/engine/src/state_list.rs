//! A list kept as one entry of a node's state: a JSON array under a key, so it rewinds and forks with the
//! path.
//!
//! Whoever changes a list replaces what was read, and fails if another did so meanwhile.

use contexture_ir::ContentHash;
use contexture_store::{Expect, State, StateChange, StateKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::EngineError;

/// What such a list is of.
pub(crate) trait Listed: Serialize + DeserializeOwned {
    /// The entry.
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

impl<T: Listed> StateList<T> {
    /// Reads what hangs off a node.
    pub(crate) fn read(state: &State) -> Result<Self, EngineError> {
        let key = StateKey::new(T::KEY)?;
        let Some(entry) = state.root.get(&key) else {
            return Ok(Self::default());
        };
        if entry.version != T::VERSION {
            let why = format!("version {}, expected {}", entry.version, T::VERSION);
            return Err(broken::<T>(why));
        }
        // A redacted value is missing: what it named is gone with it.
        let bytes = state.value(&key).map_or(&b"[]"[..], |bytes| bytes.as_ref());
        Ok(Self {
            entries: serde_json::from_slice(bytes).map_err(|error| broken::<T>(error))?,
            hash: Some(entry.hash),
        })
    }

    /// The change that puts these entries in the place of those read.
    pub(crate) fn change(&self, entries: &[T]) -> Result<StateChange, EngineError> {
        let bytes = serde_json::to_vec(entries).map_err(|error| broken::<T>(error))?;
        let expect = self.hash.map_or(Expect::Absent, Expect::Hash);
        Ok(StateChange::put(StateKey::new(T::KEY)?, T::VERSION, bytes).expecting(expect))
    }
}

fn broken<T: Listed>(why: impl ToString) -> EngineError {
    EngineError::StoredState {
        key: T::KEY.to_owned(),
        why: why.to_string(),
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

    impl Listed for Id {
        const KEY: &'static str = "@ids";
        const VERSION: u32 = 2;
    }

    fn stored(version: u32, json: Option<&str>) -> State {
        let hash = ContentHash::of(b"value");
        let mut state = State::default();
        let key = StateKey::new("@ids").unwrap();
        state.root.insert(key, StateEntry { version, hash });
        state
            .values
            .extend(json.map(|json| (hash, json.as_bytes().into())));
        state
    }

    #[test]
    fn a_list_is_read_and_replaced() {
        let none = StateList::<Id>::read(&State::default()).unwrap();
        assert_eq!(none, StateList::default());
        let id = NodeId::from_bytes([7; 16]);
        let change = none.change(&[Id(id)]).unwrap();
        assert_eq!(change.expect, Expect::Absent);
        let StateOp::Put { value, version } = change.op else {
            panic!("expected a value")
        };
        let json = String::from_utf8(value.to_vec()).unwrap();
        assert_eq!(json, format!("[\"{id}\"]"));
        let read = StateList::<Id>::read(&stored(version, Some(&json))).unwrap();
        assert_eq!(read.entries, [Id(id)]);
        let again = read.change(&[]).unwrap();
        assert_eq!(again.expect, Expect::Hash(ContentHash::of(b"value")));
        // Redacted.
        let gone = StateList::<Id>::read(&stored(2, None)).unwrap();
        assert_eq!((gone.entries.len(), gone.hash.is_some()), (0, true));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let why = |version, json| {
            let error = StateList::<Id>::read(&stored(version, Some(json))).unwrap_err();
            assert_eq!(error.kind(), "damaged");
            error.to_string()
        };
        assert_eq!(why(3, "[]"), "stored state @ids: version 3, expected 2");
        assert!(why(2, "{").starts_with("stored state @ids: "));
        assert!(why(2, "[\"no\"]").contains("\"no\" is no node id"));
    }
}
