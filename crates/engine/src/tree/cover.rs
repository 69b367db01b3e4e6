//! Which entries of a tree a compaction stands for, on the active branch.

use std::collections::HashMap;

use contexture_ir::NodeId;

use super::entry::{TreeEntries, TreeEntry};
use super::layout::TreeRow;
use super::load::ConversationTree;
use crate::state::CoverEntry;

/// By entry: the compaction that stands for it, the outermost of several.
#[derive(Debug, Default)]
pub struct CoveredEntries(HashMap<usize, NodeId>);

impl CoveredEntries {
    /// What these compactions stand for.
    #[must_use]
    pub fn from_covers(
        covers: &[CoverEntry],
        tree: &ConversationTree,
        entries: &TreeEntries,
    ) -> Self {
        let mut by_node: HashMap<NodeId, NodeId> = HashMap::new();
        // The newest is the outermost.
        for cover in covers {
            let mut at = Some(cover.last);
            while let Some(node) = at.and_then(|id| tree.nodes.get(*tree.positions.get(&id)?)) {
                by_node.insert(node.id, cover.compaction);
                at = node.parent.filter(|_| node.id != cover.first);
            }
        }
        // An entry is covered only if all of its nodes are: a message may be compacted in part.
        let all = |place: usize| {
            let nodes = &entries.0.get(place)?.nodes;
            let by = by_node.get(&nodes.first()?.id)?;
            nodes
                .iter()
                .all(|node| by_node.contains_key(&node.id))
                .then_some((place, *by))
        };
        Self((0..entries.0.len()).filter_map(all).collect())
    }

    /// The compaction that stands for an entry.
    #[must_use]
    pub fn covering_compaction(&self, entry: usize) -> Option<NodeId> {
        self.0.get(&entry).copied()
    }

    /// The rows with a single one for a stretch of entries that a compaction stands for; names and forks
    /// stay to be seen.
    #[must_use]
    pub fn fold_rows(&self, rows: Vec<TreeRow>, entries: &TreeEntries) -> Vec<TreeRow> {
        let mut out: Vec<TreeRow> = Vec::with_capacity(rows.len());
        for row in rows {
            let folded = match row {
                TreeRow::Entry { lane, entry } => self
                    .covering_compaction(entry)
                    .filter(|_| entries.0.get(entry).is_some_and(TreeEntry::is_plain))
                    .map(|_| (lane, entry)),
                _ => None,
            };
            let Some((lane, entry)) = folded else {
                out.push(row);
                continue;
            };
            match out.last_mut() {
                Some(TreeRow::Covered {
                    lane: before,
                    entry: one,
                    entries,
                }) if *before == lane
                    && self.covering_compaction(*one) == self.covering_compaction(entry) =>
                {
                    *entries += 1;
                }
                _ => out.push(TreeRow::Covered {
                    lane,
                    entry,
                    entries: 1,
                }),
            }
        }
        out
    }
}
