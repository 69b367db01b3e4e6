//! Merges a state patch into the root at a head.

use std::sync::Arc;

use contexture_ir::ContentHash;

use crate::contract::{
    Error, Limits, StateEntry, StateExpectation, StateKey, StateOp, StatePatch, StateRoot,
};

/// Result of merging a patch into a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Root after the patch.
    pub root: StateRoot,
    /// Entries that differ from the root before; `None` for removed ones.
    pub changed: Vec<(StateKey, Option<StateEntry>)>,
    /// Values of all entries that the patch puts, by hash.
    pub values: Vec<(ContentHash, Arc<[u8]>)>,
}

/// Merges `patch` into `root`; returns `None` if nothing differs.
pub fn merge_patch(
    root: &StateRoot,
    patch: &StatePatch,
    limits: &Limits,
) -> Result<Option<Merged>, Error> {
    let mut merged = Merged {
        root: root.clone(),
        changed: Vec::new(),
        values: Vec::new(),
    };
    for change in &patch.changes {
        let now = root.get(&change.key);
        // Compared with the root before the patch: the order of changes in a patch has no meaning.
        let as_expected = match change.expect {
            StateExpectation::Any => true,
            StateExpectation::Absent => now.is_none(),
            StateExpectation::Hash(hash) => now.is_some_and(|entry| entry.hash == hash),
        };
        if !as_expected {
            return Err(Error::StateConflict {
                key: change.key.clone(),
                expected: change.expect,
                actual: now.map(|entry| entry.hash),
            });
        }
        let entry = match &change.op {
            StateOp::Remove => None,
            StateOp::Put { version, value } => {
                let hash = ContentHash::of(value);
                merged.values.push((hash, Arc::clone(value)));
                Some(StateEntry {
                    version: *version,
                    hash,
                })
            }
        };
        // An equal entry is no change, so a layer may write its state at every step without
        // creating roots.
        if entry.as_ref() == now {
            continue;
        }
        match entry {
            Some(entry) => merged.root.insert(change.key.clone(), entry),
            None => merged.root.remove(&change.key),
        };
        merged.changed.push((change.key.clone(), entry));
    }
    // After all changes: a patch that removes as many keys as it adds stays within the limit.
    if merged.root.len() > limits.state_keys {
        return Err(Error::Limit {
            limit: "state_keys",
            max: limits.state_keys as u64,
            actual: merged.root.len() as u64,
        });
    }
    Ok((!merged.changed.is_empty()).then_some(merged))
}
