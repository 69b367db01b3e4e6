//! Searching in memory: no index, every node in scope is judged.

use std::collections::BTreeSet;

use async_trait::async_trait;
use contexture_ir::Owner;

use super::tree::{Placed, Tree};
use super::{MemoryStore, World};
use crate::error::Error;
use crate::rules::{self, Candidate, Ranking};
use crate::search::{Search, SearchPage, SearchRequest, SearchScope, Words};

#[async_trait]
impl Search for MemoryStore {
    async fn find(&self, owner: &Owner, request: SearchRequest) -> Result<SearchPage, Error> {
        let limits = &self.limits.search;
        rules::check_search(&request, limits)?;
        let mut world = self.world();
        let places = places(&mut world, owner, &request.scope)?;
        let words = request.words;
        let mut ranking = Ranking::new(request, limits);
        // A backend with an index offers what it gave; here the rules are the index.
        let mut has: Vec<Vec<bool>> = Vec::new();
        if words == Words::Any {
            let has_of = |(_, placed): &(&Tree, &Placed)| match placed.node.redacted_ms {
                None => rules::proposed(ranking.query(), &rules::said(&placed.node.json)),
                Some(_) => Vec::new(),
            };
            has = places.iter().map(has_of).collect();
            let count = |piece| {
                has.iter()
                    .filter(|has| has.get(piece) == Some(&true))
                    .count()
            };
            let counts: Vec<usize> = (0..ranking.to_count().len()).map(count).collect();
            ranking.counted(&counts);
        }
        for (number, (tree, placed)) in places.into_iter().enumerate() {
            let node = &placed.node;
            let admitted = ranking.admits(node.kind, node.audience, node.created_ms);
            if !admitted || node.redacted_ms.is_some() {
                continue;
            }
            let proposed = match words {
                Words::All => rules::judge(ranking.query(), &rules::said(&node.json)).is_some(),
                Words::Any => has.get(number).is_some_and(|has| ranking.proposes(has)),
            };
            if proposed
                && ranking
                    .offer(&Candidate::of(&tree.record.id, node))
                    .is_break()
            {
                break;
            }
        }
        Ok(ranking.page())
    }
}

/// The nodes in scope, what was stored last first.
fn places<'a>(
    world: &'a mut World,
    owner: &Owner,
    scope: &SearchScope,
) -> Result<Vec<(&'a Tree, &'a Placed)>, Error> {
    let trees: Vec<&Tree> = match scope {
        SearchScope::Owner => of_owner(world, owner, None),
        SearchScope::Resource(resource) => of_owner(world, owner, Some(resource)),
        SearchScope::Conversation(id) => vec![world.tree(owner, id)?],
        SearchScope::Path { conversation, at } => {
            let tree: &Tree = world.tree(owner, conversation)?;
            let mut path = BTreeSet::new();
            let mut next = tree.end(at)?;
            while let Some(placed) = tree.placed(next) {
                path.extend(next);
                next = placed.parent;
            }
            let nodes = path.into_iter().rev();
            let placed = nodes.filter_map(|index| Some((tree, tree.placed(Some(index))?)));
            return Ok(placed.collect());
        }
    };
    let nodes = |tree: &'a Tree| tree.arena.iter().rev().map(move |placed| (tree, placed));
    Ok(trees.into_iter().flat_map(nodes).collect())
}

/// An owner's conversations, the latest made first.
fn of_owner<'a>(world: &'a World, owner: &Owner, resource: Option<&str>) -> Vec<&'a Tree> {
    let mut trees: Vec<&Tree> = world
        .trees(owner)
        .filter(|tree| resource.is_none() || tree.record.resource.as_deref() == resource)
        .collect();
    trees.sort_by_key(|tree| std::cmp::Reverse(tree.record.created_ms));
    trees
}
