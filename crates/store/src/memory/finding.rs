//! Finding places in memory.

use std::cmp::Reverse;

use async_trait::async_trait;
use contexture_ir::{ConversationId, NodeId, Owner, PathHash};

use super::tree::Tree;
use super::{MemoryStore, World};
use crate::error::Error;
use crate::path_index::{PathIndex, PathMark, PathPlace, PathQuery};
use crate::rules;

impl World {
    fn places(&self, owner: &Owner, query: &PathQuery, hash: PathHash) -> Vec<PathPlace> {
        let marked = self.paths.of(owner, query.version, hash);
        let asked =
            marked.filter(|(id, _)| query.conversation.as_ref().is_none_or(|one| one == id));
        let mut places: Vec<(Reverse<i64>, PathPlace)> = asked
            .filter_map(|(id, node)| {
                let tree = self.trees.get(owner)?.get(id)?;
                Some((Reverse(tree.record.updated_ms), place(tree, hash, *node)?))
            })
            .collect();
        places.sort_by(|(one_time, one), (other_time, other)| {
            let key = |time, place: &PathPlace| {
                (
                    place.heads.is_empty(),
                    time,
                    place.conversation.clone(),
                    place.depth,
                )
            };
            key(*one_time, one).cmp(&key(*other_time, other))
        });
        let places = places.into_iter().map(|(_, place)| place);
        places.take(query.each).collect()
    }
}

fn place(tree: &Tree, hash: PathHash, node: NodeId) -> Option<PathPlace> {
    let index = tree.by_id.get(&node).copied();
    let heads = tree.branches.iter().filter(|branch| branch.head == index);
    Some(PathPlace {
        hash,
        conversation: tree.record.id.clone(),
        node,
        depth: tree.placed(index)?.node.depth,
        heads: heads.map(|branch| branch.name.clone()).collect(),
    })
}

#[async_trait]
impl PathIndex for MemoryStore {
    async fn find_paths(&self, owner: &Owner, query: PathQuery) -> Result<Vec<PathPlace>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        let world = self.world();
        let hashes = query.hashes.iter();
        Ok(hashes
            .flat_map(|hash| world.places(owner, &query, *hash))
            .collect())
    }

    async fn put_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
        version: u32,
        marks: Vec<PathMark>,
    ) -> Result<(), Error> {
        rules::check_path_hashes(marks.len(), &self.limits)?;
        let mut world = self.world();
        let tree = world.tree(owner, id)?;
        for mark in &marks {
            tree.index(mark.node)?;
        }
        world
            .paths
            .retain(owner, |of, held| of != id || held == version);
        world.paths.add(owner, id, &marks);
        Ok(())
    }
}
