//! State: what hangs off a node besides its item.
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

/// What a root says about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateEntry {
    /// The schema version of the value.
    pub version: u32,
    /// The value's hash.
    pub hash: ContentHash,
}

/// The entries of one node.
pub type StateRoot = BTreeMap<StateKey, StateEntry>;

/// Changes of state that go with an append.
///
/// They are merged into the root that is current when the append is stored, so concurrent appends
/// do not lose each other's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatePatch {
    /// Each key at most once.
    pub changes: Vec<StateChange>,
    /// Index of the first item that carries the new root; the items before it carry the root
    /// before. Default 0: all of them.
    pub from: usize,
}

impl StatePatch {
    /// A patch of one entry, whatever was there.
    #[must_use]
    pub fn put_entry(key: StateKey, version: u32, value: impl Into<Arc<[u8]>>) -> Self {
        Self {
            changes: vec![StateChange::put_entry(key, version, value)],
            from: 0,
        }
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// One changed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The entry.
    pub key: StateKey,
    /// What must be there.
    pub expect: StateExpectation,
    /// What is done.
    pub op: StateOp,
}

impl StateChange {
    /// Sets an entry, whatever was there.
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

    /// Removes an entry, whatever was there.
    #[must_use]
    pub fn remove_entry(key: StateKey) -> Self {
        Self {
            key,
            expect: StateExpectation::Any,
            op: StateOp::Remove,
        }
    }

    /// The same change, under a condition.
    #[must_use]
    pub fn with_condition(mut self, expect: StateExpectation) -> Self {
        self.expect = expect;
        self
    }
}

/// What is done to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateOp {
    /// It is set.
    Put {
        /// The schema version of the value.
        version: u32,
        /// The value.
        value: Arc<[u8]>,
    },
    /// It is removed.
    Remove,
}

/// Which state to read.
#[derive(Clone, Debug)]
pub struct StateRequest {
    /// The node.
    pub at: PathEnd,
    /// Only keys that begin with this; empty: all.
    pub prefix: String,
    /// Whether values are wanted.
    pub values: StateValues,
}

impl StateRequest {
    /// Everything at `at`, values included.
    #[must_use]
    pub fn all_entries(at: PathEnd) -> Self {
        Self {
            at,
            prefix: String::new(),
            values: StateValues::Load,
        }
    }
}

/// Whether values are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateValues {
    /// Hashes are enough.
    Skip,
    /// They are.
    #[default]
    Load,
}

/// The state at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// The entries.
    pub root: StateRoot,
    /// Their values, by hash; empty if the request skips them. A redacted value is missing.
    pub values: BTreeMap<ContentHash, Arc<[u8]>>,
}

impl NodeState {
    /// The value of a key, if it was loaded.
    #[must_use]
    pub fn loaded_value(&self, key: &StateKey) -> Option<&Arc<[u8]>> {
        self.values.get(&self.root.get(key)?.hash)
    }
}

/// The key of a state entry: 1 to 255 bytes without control characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey(Box<str>);

impl StateKey {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks the rule.
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

    /// The text.
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

/// What must be there, or [`Error::StateConflict`](crate::Error::StateConflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateExpectation {
    /// Anything or nothing.
    Any,
    /// Nothing.
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
