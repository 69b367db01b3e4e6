//! What the index proposes: the expressions it is asked, and the nodes it found for each phrase.
//!
//! Counting a phrase visits its newest nodes, one more than the ranking examines at most. They are kept: where each phrase
//! selects nodes by itself, the nodes to examine are those of the phrases, merged, and the index is asked no more.
//!
//! Not here: where to search, and the ranking.

use std::cmp::Reverse;

use contexture_store::rules::{ConditionExtent, IndexCondition};

use super::fts_rowid;

/// A node that the index found. Nodes are ordered as they are visited: by the part of the area, later nodes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundNode {
    part: usize,
    rowid: Reverse<i64>,
}

impl FoundNode {
    pub(super) fn new(part: usize, rowid: i64) -> Self {
        Self {
            part,
            rowid: Reverse(rowid),
        }
    }

    /// Returns the key of the node.
    pub(super) fn key(self) -> i64 {
        fts_rowid::key_of(self.rowid.0)
    }
}

/// Nodes that have a phrase, in the order of visiting: all of them or the first.
#[derive(Debug)]
pub(super) struct PhraseNodes {
    pub(super) nodes: Vec<FoundNode>,
    pub(super) is_whole: bool,
    /// Whether the search for them ended early because of other owners' nodes.
    pub(super) is_cut: bool,
    /// Whether an index found them.
    is_indexed: bool,
}

impl PhraseNodes {
    pub(super) fn new(proposal: &IndexProposal) -> Self {
        Self {
            nodes: Vec::new(),
            is_whole: true,
            is_cut: false,
            is_indexed: !matches!(proposal, IndexProposal::AllNodes),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// Nodes to examine, in the order of visiting: all of them or the first.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    pub(super) nodes: Vec<FoundNode>,
    pub(super) is_whole: bool,
}

impl Proposals {
    /// Merges the nodes of the phrases with these numbers.
    pub(super) fn merge(counted: &[PhraseNodes], phrases: &[usize]) -> Self {
        let wanted = phrases.iter().filter_map(|phrase| counted.get(*phrase));
        // A phrase that no index finds is looked for in all nodes, which are visited in another order.
        if wanted.clone().any(|phrase| !phrase.is_indexed) {
            return Self::default();
        }
        let cut = wanted.clone().filter(|phrase| !phrase.is_whole);
        if cut.clone().any(|phrase| phrase.nodes.is_empty()) {
            return Self::default();
        }
        // Behind the last node that was kept of a phrase, others of it may be missing.
        let end = cut.filter_map(|phrase| phrase.nodes.last()).min();
        let nodes = wanted.flat_map(|phrase| &phrase.nodes);
        let nodes = nodes.filter(|node| end.is_none_or(|end| *node <= end));
        let mut nodes: Vec<FoundNode> = nodes.copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        Self {
            nodes,
            is_whole: end.is_none(),
        }
    }
}

/// Which nodes may match a query, as far as the index can tell.
pub(super) enum IndexProposal {
    Nothing,
    /// All nodes that are not redacted.
    AllNodes,
    /// Nodes that match an FTS5 expression.
    Matches(String),
}

impl IndexProposal {
    /// Returns the nodes that satisfy all conditions of at least one of these lists.
    pub(super) fn from_alternatives(alternatives: &[Vec<IndexCondition<'_>>]) -> Self {
        if alternatives.is_empty() {
            Self::Nothing
        } else if alternatives.iter().any(Vec::is_empty) {
            Self::AllNodes
        } else {
            Self::Matches(match_expression(alternatives))
        }
    }
}

/// Builds the FTS5 expression of the alternatives. Terms contain no quotes, so none can end the
/// string.
fn match_expression(alternatives: &[Vec<IndexCondition<'_>>]) -> String {
    let conditions = |alternative: &Vec<IndexCondition<'_>>| {
        let conditions = alternative.iter().map(|condition| {
            let term = condition.term;
            match condition.extent {
                ConditionExtent::Whole => format!("\"{term}\""),
                ConditionExtent::Prefix => {
                    let others = condition.other_terms();
                    let others: String = others.map(|term| format!(" OR \"{term}\"")).collect();
                    format!("(\"{term}\"*{others})")
                }
            }
        });
        format!("({})", conditions.collect::<Vec<_>>().join(" AND "))
    };
    // In parentheses, because of the precedence of AND and OR.
    let alternatives: Vec<String> = alternatives.iter().map(conditions).collect();
    alternatives.join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(rowids: &[i64], is_whole: bool) -> PhraseNodes {
        PhraseNodes {
            nodes: rowids
                .iter()
                .map(|rowid| FoundNode::new(0, *rowid))
                .collect(),
            is_whole,
            is_cut: false,
            is_indexed: true,
        }
    }

    #[test]
    fn nodes_of_phrases_are_merged_as_far_as_they_are_known() {
        let counted = [
            phrase(&[9, 7, 1], true),
            phrase(&[8, 7, 5], false),
            phrase(&[6, 4], false),
            phrase(&[], false),
        ];
        for (phrases, expected, is_whole) in [
            (&[0][..], &[9, 7, 1][..], true),
            (&[0, 1], &[9, 8, 7, 5], false),
            // Of the second, nodes between 5 and 4 may be missing.
            (&[1, 2], &[8, 7, 6, 5], false),
            (&[], &[], true),
            // Nothing is known of the last one.
            (&[0, 3], &[], false),
        ] {
            let merged = Proposals::merge(&counted, phrases);
            let found: Vec<i64> = merged.nodes.iter().map(|node| node.rowid.0).collect();
            assert_eq!(
                (found.as_slice(), merged.is_whole),
                (expected, is_whole),
                "{phrases:?}"
            );
        }
    }
}
