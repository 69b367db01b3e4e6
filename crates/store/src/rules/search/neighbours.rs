//! Neighbours lend score: the answer to a question often stands beside the text that has its words.
//!
//! The neighbours of a node are the two nodes before it on its path and the two after it. Each text
//! gets its own score, three quarters of the larger score of the two texts beside it, and half of
//! the larger score at distance two. Only nodes that were examined lend. A node that was not, because
//! it has none of the words, can become a hit if a node after it was found.
//!
//! Not here: own scores, and reading nodes.

use std::collections::BTreeMap;

/// Shares of the own score and of those of neighbours at distances one and two.
const SHARES: [u32; 3] = [4, 3, 2];

/// Place of a node: its key, and those of the two nodes before it on its path, nearest first. Keys
/// are a backend's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace<K> {
    /// Key of the node.
    pub key: K,
    /// Keys of the nodes at distances one and two before it; `None` before the first node.
    pub before: [Option<K>; 2],
}

/// Scores of nodes, by their keys.
#[derive(Debug)]
pub(super) struct ScoreTable<K> {
    own: BTreeMap<K, u32>,
    /// Largest score lent to a node by a neighbour at distance one, and at distance two.
    lent: BTreeMap<K, [u32; 2]>,
}

impl<K: Clone + Ord> ScoreTable<K> {
    pub(super) fn new() -> Self {
        Self {
            own: BTreeMap::new(),
            lent: BTreeMap::new(),
        }
    }

    /// Computes what the examined nodes, with their own scores, lend each other and to the nodes
    /// before them.
    pub(super) fn build<'a>(examined: impl Iterator<Item = (&'a NodePlace<K>, u32)> + Clone) -> Self
    where
        K: 'a,
    {
        let mut table = Self::new();
        let mut parents: BTreeMap<&K, &K> = BTreeMap::new();
        for (place, score) in examined.clone() {
            table.own.insert(place.key.clone(), score);
            let [first, second] = &place.before;
            parents.extend(first.as_ref().map(|first| (&place.key, first)));
            parents.extend(first.as_ref().zip(second.as_ref()));
        }
        // To the nodes before, whether they were examined or not.
        for (place, score) in examined {
            for (distance, before) in place.before.iter().enumerate() {
                if let Some(before) = before {
                    table.lend(before, distance, score);
                }
            }
        }
        // To the nodes after: those that were examined, and those that one of them names.
        let mut receivers: Vec<K> = table.lent.keys().cloned().collect();
        receivers.extend(table.own.keys().cloned());
        for key in receivers {
            let mut before = parents.get(&key);
            for distance in 0..2 {
                let Some(parent) = before else { break };
                if let Some(score) = table.own.get(*parent).copied() {
                    table.lend(&key, distance, score);
                }
                before = parents.get(*parent);
            }
        }
        table
    }

    /// Lends a node a score; `distance` 0 stands for the node beside it.
    fn lend(&mut self, to: &K, distance: usize, score: u32) {
        let best = self.lent.entry(to.clone()).or_default();
        if let Some(best) = best.get_mut(distance) {
            *best = (*best).max(score);
        }
    }

    /// Returns the score of a node with what its neighbours lend it.
    pub(super) fn total(&self, key: &K) -> u32 {
        let own = self.own.get(key).copied().unwrap_or(0);
        let [beside, near] = self.lent.get(key).copied().unwrap_or_default();
        let shares = SHARES.into_iter().zip([own, beside, near]);
        shares.fold(0, |sum: u32, (share, score)| {
            sum.saturating_add(score.saturating_mul(share))
        })
    }

    /// Returns the nodes that were not examined and whose score is at least `least`.
    pub(super) fn newcomers(&self, least: u32) -> Vec<K> {
        let unknown = self.lent.keys().filter(|key| !self.own.contains_key(key));
        let wanted = unknown.filter(|key| self.total(key) >= least);
        wanted.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: i32) -> NodePlace<i32> {
        let before = |distance| Some(key - distance).filter(|key| *key >= 0);
        NodePlace {
            key,
            before: [before(1), before(2)],
        }
    }

    #[test]
    fn neighbours_lend_the_larger_score() {
        let places = [(place(1), 8), (place(2), 16), (place(3), 4), (place(9), 1)];
        let table = ScoreTable::build(places.iter().map(|(place, score)| (place, *score)));
        for (key, expected) in [
            (0, 8 * 3 + 16 * 2),
            (1, 8 * 4 + 16 * 3 + 4 * 2),
            (2, 16 * 4 + 8 * 3),
            (3, 4 * 4 + 16 * 3 + 8 * 2),
            (4, 0),
            (8, 3),
            (9, 4),
        ] {
            assert_eq!(table.total(&key), expected, "{key}");
        }
        assert_eq!(table.newcomers(3), [0, 8]);
        assert_eq!(table.newcomers(2), [0, 7, 8]);
    }

    #[test]
    fn large_scores_do_not_overflow() {
        let places = [(place(1), u32::MAX), (place(2), u32::MAX)];
        let table = ScoreTable::build(places.iter().map(|(place, score)| (place, *score)));
        assert_eq!(table.total(&1), u32::MAX);
    }
}
