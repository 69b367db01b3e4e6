//! The table of path hashes in memory.
//!
//! Not here: the calls of the contract (`path_index`).

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ConversationId, NodeId, Owner, PathHash};

use crate::contract::PathMark;

/// The nodes of each hash.
#[derive(Debug, Default)]
pub(super) struct PathHashTable(
    BTreeMap<(Owner, u32, PathHash), BTreeSet<(ConversationId, NodeId)>>,
);

impl PathHashTable {
    pub(super) fn add_marks(&mut self, owner: &Owner, id: &ConversationId, marks: &[PathMark]) {
        for mark in marks {
            let key = (owner.clone(), mark.version, mark.hash);
            let places = self.0.entry(key).or_default();
            places.insert((id.clone(), mark.node));
        }
    }

    /// Keeps only those of an owner's marks for which `keep` is true.
    pub(super) fn retain_marks(
        &mut self,
        owner: &Owner,
        keep: impl Fn(&ConversationId, u32) -> bool,
    ) {
        self.0.retain(|(of, version, _), places| {
            if of == owner {
                places.retain(|(id, _)| keep(id, *version));
            }
            !places.is_empty()
        });
    }

    /// Returns the nodes of a hash.
    pub(super) fn nodes_of_hash(
        &self,
        owner: &Owner,
        version: u32,
        hash: PathHash,
    ) -> impl Iterator<Item = &(ConversationId, NodeId)> {
        self.0
            .get(&(owner.clone(), version, hash))
            .into_iter()
            .flatten()
    }
}
