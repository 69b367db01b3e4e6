//! The calls of the path index in memory.

use std::cmp::Reverse;

use async_trait::async_trait;
use contexture_ir::{ConversationId, NodeId, Owner, PathHash};

use super::tree::NodeTree;
use super::{MemoryStore, Tables};
use crate::contract::{Error, PathIndex, PathMark, PathMatch, PathQuery};
use crate::rules;

impl Tables {
    fn find_matches(&self, owner: &Owner, query: &PathQuery, hash: PathHash) -> Vec<PathMatch> {
        let marked = self.paths.nodes_of_hash(owner, query.version, hash);
        let candidates =
            marked.filter(|(id, _)| query.conversation.as_ref().is_none_or(|one| one == id));
        let mut matches: Vec<(Reverse<i64>, PathMatch)> = candidates
            .filter_map(|(id, node)| {
                let tree = self.trees.get(owner)?.get(id)?;
                Some((
                    Reverse(tree.record.updated_ms),
                    path_match(tree, hash, *node)?,
                ))
            })
            .collect();
        matches.sort_by(|(one_time, one), (other_time, other)| {
            let key = |time, found: &PathMatch| {
                (
                    found.heads.is_empty(),
                    time,
                    found.conversation.clone(),
                    found.depth,
                )
            };
            key(*one_time, one).cmp(&key(*other_time, other))
        });
        let matches = matches.into_iter().map(|(_, found)| found);
        matches.take(query.each).collect()
    }
}

fn path_match(tree: &NodeTree, hash: PathHash, node: NodeId) -> Option<PathMatch> {
    let index = tree.by_id.get(&node).copied();
    let heads = tree.branches.iter().filter(|branch| branch.head == index);
    Some(PathMatch {
        hash,
        conversation: tree.record.id.clone(),
        node,
        depth: tree.stored_node(index)?.node.depth,
        heads: heads.map(|branch| branch.name.clone()).collect(),
    })
}

#[async_trait]
impl PathIndex for MemoryStore {
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        let tables = self.lock_tables();
        let hashes = query.hashes.iter();
        Ok(hashes
            .flat_map(|hash| tables.find_matches(owner, &query, *hash))
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
        let mut tables = self.lock_tables();
        let tree = tables.conversation_tree(owner, id)?;
        for mark in &marks {
            tree.node_index(mark.node)?;
        }
        tables
            .paths
            .retain_marks(owner, |of, held| of != id || held == version);
        tables.paths.add_marks(owner, id, &marks);
        Ok(())
    }
}
