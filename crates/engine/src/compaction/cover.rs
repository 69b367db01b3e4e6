//! The state entry `@cover`: which compactions are in effect, and what they stand for.
//!
//! Version 1 is a JSON array of objects with the node ids `compaction`, `first` and `last`. It hangs off the
//! path, so it rewinds and forks with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_compile::Cover;
use contexture_ir::{ContentHash, NodeId};
use contexture_store::{Expect, Node, State, StateChange, StateKey};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

pub(crate) const KEY: &str = "@cover";
const VERSION: u32 = 1;

/// A compaction in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverEntry {
    /// The compaction item.
    pub compaction: NodeId,
    /// The first node it stands for.
    pub first: NodeId,
    /// The last.
    pub last: NodeId,
}

/// What is in effect on a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Covers {
    pub(crate) entries: Vec<CoverEntry>,
    /// The hash of the stored value, by which a change notices another.
    hash: Option<ContentHash>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    compaction: String,
    first: String,
    last: String,
}

impl Covers {
    /// Reads what hangs off a node.
    pub(crate) fn read(state: &State) -> Result<Self, EngineError> {
        let key = StateKey::new(KEY)?;
        let Some(entry) = state.root.get(&key) else {
            return Ok(Self::default());
        };
        let broken = |why: String| EngineError::StoredState {
            key: KEY.to_owned(),
            why,
        };
        if entry.version != VERSION {
            return Err(broken(format!(
                "version {}, expected {VERSION}",
                entry.version
            )));
        }
        // A redacted value is missing: what it named is gone with it.
        let bytes = state
            .value(&key)
            .map(|bytes| bytes.as_ref())
            .unwrap_or(b"[]");
        let stored: Vec<Stored> =
            serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?;
        let id = |text: &str| -> Result<NodeId, EngineError> {
            text.parse()
                .map_err(|_| broken(format!("{text:?} is no node id")))
        };
        let read = |one: Stored| -> Result<CoverEntry, EngineError> {
            Ok(CoverEntry {
                compaction: id(&one.compaction)?,
                first: id(&one.first)?,
                last: id(&one.last)?,
            })
        };
        Ok(Self {
            entries: stored.into_iter().map(read).collect::<Result<_, _>>()?,
            hash: Some(entry.hash),
        })
    }

    /// The covers by their places on a path; one with a node that is not there is left out.
    pub(crate) fn on(&self, nodes: &[Arc<Node>]) -> Vec<Cover> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let places: BTreeMap<NodeId, usize> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.id, at))
            .collect();
        let at = |entry: &CoverEntry| {
            Some(Cover {
                compaction: *places.get(&entry.compaction)?,
                first: *places.get(&entry.first)?,
                last: *places.get(&entry.last)?,
            })
        };
        self.entries.iter().filter_map(at).collect()
    }

    /// The change that puts these entries in the place of those read, and fails if others were put there
    /// meanwhile.
    pub(crate) fn change(&self, entries: &[CoverEntry]) -> Result<StateChange, EngineError> {
        let stored: Vec<Stored> = entries
            .iter()
            .map(|entry| Stored {
                compaction: entry.compaction.to_string(),
                first: entry.first.to_string(),
                last: entry.last.to_string(),
            })
            .collect();
        let bytes = serde_json::to_vec(&stored).map_err(|error| EngineError::StoredState {
            key: KEY.to_owned(),
            why: error.to_string(),
        })?;
        let expect = self.hash.map_or(Expect::Absent, Expect::Hash);
        Ok(StateChange::put(StateKey::new(KEY)?, VERSION, bytes).expecting(expect))
    }
}
