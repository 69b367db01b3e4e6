//! Neighbours lend score: the answer to a question often stands beside the text that has its words.
//!
//! The neighbours of a node are the two nodes before it on its path and the two after it. Each text
//! gets its own score, three quarters of the larger score of the two texts beside it, and half of
//! the larger score at distance two. Only nodes that were examined lend. A node that was not, because
//! it has none of the words, can become a hit if a node after it was found.
//!
//! Not here: own scores, and reading nodes.

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

/// Scores of nodes, sorted by their keys: lists are built several times as fast as maps.
#[derive(Debug)]
pub(super) struct ScoreTable<K> {
    own: Vec<(K, u32)>,
    /// Largest score lent to a node by a neighbour at distance one, and at distance two.
    lent: Vec<(K, [u32; 2])>,
}

impl<K: Clone + Ord> ScoreTable<K> {
    pub(super) fn new() -> Self {
        Self {
            own: Vec::new(),
            lent: Vec::new(),
        }
    }

    /// Computes what the examined nodes, with their own scores, lend each other and to the nodes
    /// before them.
    pub(super) fn build<'a>(examined: impl Iterator<Item = (&'a NodePlace<K>, u32)>) -> Self
    where
        K: 'a,
    {
        let mut own: Vec<(K, u32)> = Vec::new();
        let mut parents: Vec<(&K, &K)> = Vec::new();
        // To the nodes before, whether they were examined or not.
        let mut lent: Vec<(K, [u32; 2])> = Vec::new();
        for (place, score) in examined {
            own.push((place.key.clone(), score));
            let [first, second] = &place.before;
            parents.extend(first.as_ref().map(|first| (&place.key, first)));
            parents.extend(first.as_ref().zip(second.as_ref()));
            lent.extend(first.clone().map(|key| (key, [score, 0])));
            lent.extend(second.clone().map(|key| (key, [0, score])));
        }
        own.sort_unstable();
        parents.sort_unstable();
        parents.dedup();
        // To the nodes after: those that were examined, and those that one of them names.
        let mut receivers: Vec<K> = lent.iter().map(|(key, _)| key.clone()).collect();
        receivers.extend(own.iter().map(|(key, _)| key.clone()));
        receivers.sort_unstable();
        receivers.dedup();
        for key in receivers {
            let first = find(&parents, &&key).copied();
            let second = first.and_then(|first| find(&parents, &first).copied());
            let score = |before: Option<&K>| before.and_then(|key| find(&own, key).copied());
            let scores = [score(first), score(second)].map(Option::unwrap_or_default);
            if scores != [0, 0] {
                lent.push((key, scores));
            }
        }
        Self {
            own,
            lent: merge_lent(lent),
        }
    }

    /// Returns the score of a node with what its neighbours lend it.
    pub(super) fn total(&self, key: &K) -> u32 {
        let own = find(&self.own, key).copied().unwrap_or(0);
        let [beside, near] = find(&self.lent, key).copied().unwrap_or_default();
        let shares = SHARES.into_iter().zip([own, beside, near]);
        shares.fold(0, |sum: u32, (share, score)| {
            sum.saturating_add(score.saturating_mul(share))
        })
    }

    /// Returns the nodes that were not examined and whose score is at least `least`.
    pub(super) fn newcomers(&self, least: u32) -> Vec<K> {
        let keys = self.lent.iter().map(|(key, _)| key);
        let unknown = keys.filter(|key| find(&self.own, key).is_none());
        let wanted = unknown.filter(|key| self.total(key) >= least);
        wanted.cloned().collect()
    }
}

/// Returns the value of a key in a sorted list.
fn find<'a, K: Ord, V>(sorted: &'a [(K, V)], key: &K) -> Option<&'a V> {
    let at = sorted.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
    sorted.get(at).map(|(_, value)| value)
}

/// Sorts what was lent by keys, and keeps the largest of each.
fn merge_lent<K: Ord>(mut lent: Vec<(K, [u32; 2])>) -> Vec<(K, [u32; 2])> {
    lent.sort_unstable();
    lent.dedup_by(|(key, [beside, near]), (kept, best)| {
        let is_same = key == kept;
        if is_same {
            *best = [best[0].max(*beside), best[1].max(*near)];
        }
        is_same
    });
    lent
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
