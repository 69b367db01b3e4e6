//! Search in memory: there is no index, so every node in scope is examined.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use contexture_ir::{ConversationId, NodeId, Owner};

use super::tree::{NodeTree, StoredNode};
use super::{MemoryStore, Tables};
use crate::contract::{Error, MatchMode, Search, SearchPage, SearchRequest, SearchScope};
use crate::rules::{self, NodePlace, Ranking, SearchCandidate};

#[async_trait]
impl Search for MemoryStore {
    async fn search_nodes(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error> {
        let limits = &self.limits.search;
        rules::check_search(&request, limits)?;
        let mut tables = self.lock_tables();
        let candidates = nodes_in_scope(&mut tables, owner, &request.scope)?;
        let words = request.words;
        let mut ranking = Ranking::new(request, limits);
        // Backends with an index ask it which phrases a node has; here they are computed from the
        // text.
        let mut has: Vec<Vec<bool>> = Vec::new();
        if words == MatchMode::Any {
            let phrases_of = |(_, stored): &(&NodeTree, &StoredNode)| match stored.node.redacted_ms
            {
                None => rules::phrases_with_all_terms(
                    ranking.query(),
                    &rules::searchable_text(&stored.node.json),
                ),
                Some(_) => Vec::new(),
            };
            has = candidates.iter().map(phrases_of).collect();
            let count = |piece| {
                has.iter()
                    .filter(|has| has.get(piece) == Some(&true))
                    .count()
            };
            let counts: Vec<usize> = (0..ranking.terms_to_count().len()).map(count).collect();
            ranking.set_counts(&counts);
        }
        for (number, (tree, stored)) in candidates.iter().copied().enumerate() {
            let node = &stored.node;
            let admitted = ranking.matches_filters(node.kind, node.audience, node.created_ms);
            if !admitted || node.redacted_ms.is_some() {
                continue;
            }
            let proposed = match words {
                MatchMode::All => {
                    rules::match_all(ranking.query(), &rules::searchable_text(&node.json)).is_some()
                }
                MatchMode::Any => has
                    .get(number)
                    .is_some_and(|has| ranking.should_examine(has)),
            };
            if proposed
                && ranking
                    .examine_candidate(
                        &SearchCandidate::from_node(
                            &tree.record.id,
                            tree.record.resource.as_deref(),
                            node,
                        ),
                        place_of(tree, stored),
                    )
                    .is_break()
            {
                break;
            }
        }
        let trees: BTreeMap<&ConversationId, &NodeTree> = candidates
            .iter()
            .map(|(tree, _)| (&tree.record.id, *tree))
            .collect();
        for key in ranking.neighbours_to_read() {
            let tree = trees.get(&key.0).copied();
            let stored = tree.and_then(|tree| tree.stored_node(tree.by_id.get(&key.1).copied()));
            if let Some(stored) = stored {
                let id = key.0.clone();
                ranking.add_neighbour(&id, key, &stored.node);
            }
        }
        Ok(ranking.into_page())
    }
}

/// Returns the place of a node, which is named by its conversation and its id.
fn place_of(tree: &NodeTree, stored: &StoredNode) -> NodePlace<(ConversationId, NodeId)> {
    let key = |stored: &StoredNode| (tree.record.id.clone(), stored.node.id);
    let first = tree.stored_node(stored.parent);
    let second = first.and_then(|first| tree.stored_node(first.parent));
    NodePlace {
        key: key(stored),
        before: [first.map(key), second.map(key)],
    }
}

/// Returns the nodes in scope; within a conversation, the last stored first.
fn nodes_in_scope<'a>(
    tables: &'a mut Tables,
    owner: &Owner,
    scope: &SearchScope,
) -> Result<Vec<(&'a NodeTree, &'a StoredNode)>, Error> {
    let trees: Vec<&NodeTree> = match scope {
        SearchScope::Owner => resource_trees(tables, owner, None),
        SearchScope::Resource(resource) => resource_trees(tables, owner, Some(resource)),
        SearchScope::Conversation(id) => vec![tables.conversation_tree(owner, id)?],
        SearchScope::Path { conversation, at } => {
            let tree: &NodeTree = tables.conversation_tree(owner, conversation)?;
            let mut path = BTreeSet::new();
            let mut next = tree.resolve_end(at)?;
            while let Some(stored) = tree.stored_node(next) {
                path.extend(next);
                next = stored.parent;
            }
            let nodes = path.into_iter().rev();
            let stored = nodes.filter_map(|index| Some((tree, tree.stored_node(Some(index))?)));
            return Ok(stored.collect());
        }
    };
    let nodes = |tree: &'a NodeTree| tree.arena.iter().rev().map(move |stored| (tree, stored));
    Ok(trees.into_iter().flat_map(nodes).collect())
}

/// Returns an owner's conversations, the latest created first.
fn resource_trees<'a>(
    tables: &'a Tables,
    owner: &Owner,
    resource: Option<&str>,
) -> Vec<&'a NodeTree> {
    let mut trees: Vec<&NodeTree> = tables
        .owner_trees(owner)
        .filter(|tree| resource.is_none() || tree.record.resource.as_deref() == resource)
        .collect();
    trees.sort_by_key(|tree| std::cmp::Reverse(tree.record.created_ms));
    trees
}
