//! State: versioned values attached to a node besides its item.
//!
//! A root maps keys (`path/<layer>/…`, `run/<id>/<layer>/…`, `@plan/<profile>`) to a schema version
//! and the hash of a value. Every node has one; a transaction makes at most one new root. Roots are
//! values here; how a backend keeps them small is [`rules::RootRecord`](crate::rules::RootRecord).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use contexture_ir::{ContentHash, Error};

use crate::contract::PathEnd;

/// Version and hash that a state root records for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateEntry {
    /// Schema version of the value.
    pub version: u32,
    /// Hash of the value.
    pub hash: ContentHash,
}

/// State entries of a node, by key.
pub type StateRoot = BTreeMap<StateKey, StateEntry>;

/// Changes of state that go with an append.
///
/// They are merged into the root that is current when the append is stored, so concurrent appends
/// do not lose each other's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatePatch {
    /// Changed entries, each key at most once.
    pub changes: Vec<StateChange>,
    /// Index of the first item that carries the new root; the items before it carry the previous
    /// root. Default 0: all items carry the new root.
    pub from: usize,
}

impl StatePatch {
    /// Returns a patch that sets one entry, whatever was there.
    #[must_use]
    pub fn put_entry(key: StateKey, version: u32, value: impl Into<Arc<[u8]>>) -> Self {
        Self {
            changes: vec![StateChange::put_entry(key, version, value)],
            from: 0,
        }
    }

    /// Returns whether the patch changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Change of one state entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Key of the entry.
    pub key: StateKey,
    /// Content that must be there before the change.
    pub expect: StateExpectation,
    /// Operation on the entry.
    pub op: StateOp,
}

impl StateChange {
    /// Returns a change that sets an entry, whatever was there.
    #[must_use]
    pub fn put_entry(key: StateKey, version: u32, value: impl Into<Arc<[u8]>>) -> Self {
        Self {
            key,
            expect: StateExpectation::Any,
            op: StateOp::Put {
                version,
                value: value.into(),
            },
        }
    }

    /// Returns a change that removes an entry, whatever was there.
    #[must_use]
    pub fn remove_entry(key: StateKey) -> Self {
        Self {
            key,
            expect: StateExpectation::Any,
            op: StateOp::Remove,
        }
    }

    /// Returns whether the change would leave another value than the one in `state`, whose values are loaded.
    #[must_use]
    pub fn alters(&self, state: &NodeState) -> bool {
        match &self.op {
            StateOp::Put { value, .. } => state.loaded_value(&self.key) != Some(value),
            StateOp::Remove => state.root.contains_key(&self.key),
        }
    }

    /// Returns the same change with a condition.
    #[must_use]
    pub fn with_condition(mut self, expect: StateExpectation) -> Self {
        self.expect = expect;
        self
    }
}

/// Operation on a state entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateOp {
    /// The entry is set.
    Put {
        /// Schema version of the value.
        version: u32,
        /// Bytes of the value.
        value: Arc<[u8]>,
    },
    /// The entry is removed.
    Remove,
}

/// Request for the state at the end of a path.
#[derive(Clone, Debug)]
pub struct StateRequest {
    /// End of the path whose state is read.
    pub at: PathEnd,
    /// Only entries whose key begins with this text; empty for all.
    pub prefix: String,
    /// Whether values are loaded, or only their hashes. Default: values.
    pub values: StateValues,
}

impl StateRequest {
    /// Returns a request for all entries at `at`, values included.
    #[must_use]
    pub fn all_entries(at: PathEnd) -> Self {
        Self {
            at,
            prefix: String::new(),
            values: StateValues::Load,
        }
    }
}

/// Whether values are loaded, or only their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateValues {
    /// Only hashes are loaded.
    Skip,
    /// Hashes and values are loaded.
    #[default]
    Load,
}

/// The state at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// Version and hash of each entry, by key.
    pub root: StateRoot,
    /// Values by hash; empty if the request skips them. A redacted value is missing.
    pub values: BTreeMap<ContentHash, Arc<[u8]>>,
}

impl NodeState {
    /// Returns the value of a key, if it was loaded.
    #[must_use]
    pub fn loaded_value(&self, key: &StateKey) -> Option<&Arc<[u8]>> {
        self.values.get(&self.root.get(key)?.hash)
    }
}

/// Key of a state entry: 1 to 255 bytes without control characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey(Box<str>);

impl StateKey {
    /// Length of the longest key, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks that `text` is 1 to 255 bytes without control characters.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > Self::MAX_BYTES || text.chars().any(char::is_control) {
            return Err(Error::BadId {
                kind: "state key",
                value: text.chars().take(80).collect(),
                rule: "expected 1 to 255 bytes without control characters",
            });
        }
        Ok(Self(text.into()))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for StateKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

/// Content that an entry must have before a change, or the append fails with
/// [`Error::StateConflict`](crate::Error::StateConflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateExpectation {
    /// Any value, or no entry at all.
    Any,
    /// No entry with this key.
    Absent,
    /// A value with this hash.
    Hash(ContentHash),
}

impl fmt::Display for StateExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Absent => f.write_str("nothing"),
            Self::Hash(hash) => fmt::Display::fmt(hash, f),
        }
    }
}
