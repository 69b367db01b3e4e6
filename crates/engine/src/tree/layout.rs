//! The order of the rows and the lane each stands in.
//!
//! Newest first, children before parents. Of an entry's children one, the trunk, goes on in its
//! lane: the one the active branch leads through, else the one with most entries behind it. Each
//! other child is drawn whole in the lane beside, and joined before the next. So a straight line
//! never leaves its lane, and as a side branch has at most half of what hangs off its fork, n entries
//! need at most log n lanes beside the active branch's.

use contexture_ir::NodeId;

use super::entry::TreeEntries;

/// A straight stretch of more entries than this is shortened.
const LONG: usize = 12;

/// How many of its newest entries are shown.
const SHOWN_NEW: usize = 6;

/// How many of its oldest entries are shown.
const SHOWN_OLD: usize = 3;

/// One row of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeRow {
    /// An entry in its lane.
    Entry {
        /// The lane, from 0.
        lane: usize,
        /// Its place among the entries.
        entry: usize,
    },
    /// The lane beside ends: it left this one here.
    Join {
        /// Lane of this row, counted from the left.
        lane: usize,
    },
    /// Entries of a lane that are not shown.
    Elided {
        /// Lane of this row, counted from the left.
        lane: usize,
        /// Number of entries in the stretch.
        entries: usize,
    },
    /// Entries of a lane that a compaction stands for.
    Covered {
        /// Lane of this row, counted from the left.
        lane: usize,
        /// The newest of them.
        entry: usize,
        /// Number of entries in the stretch.
        entries: usize,
    },
    /// Entries beyond a limit.
    Hidden {
        /// Number of entries in the stretch.
        entries: usize,
        /// At how many of them branches end.
        heads: usize,
    },
    /// Between two trees that share nothing.
    Gap,
}

enum LayoutTask {
    Subtree { root: usize, lane: usize },
    Row(TreeRow),
}

/// All rows of all trees; those that hold the active branch first.
#[must_use]
pub fn layout_rows(entries: &TreeEntries) -> Vec<TreeRow> {
    let trunk = find_trunks(entries);
    let mut roots: Vec<usize> = Vec::new();
    for (place, entry) in entries.0.iter().enumerate() {
        if entry.parent.is_none() {
            roots.push(place);
        }
    }
    // The newest tree first, and the one with the active branch before all.
    roots.reverse();
    roots.sort_by_key(|root| !trunk.active.get(*root).copied().unwrap_or(false));
    let mut rows = Vec::new();
    for (at, root) in roots.into_iter().enumerate() {
        if at > 0 {
            rows.push(TreeRow::Gap);
        }
        push_tree_rows(entries, &trunk, root, &mut rows);
    }
    rows
}

fn push_tree_rows(entries: &TreeEntries, trunk: &Trunks, root: usize, rows: &mut Vec<TreeRow>) {
    let mut tasks = vec![LayoutTask::Subtree { root, lane: 0 }];
    while let Some(task) = tasks.pop() {
        let (root, lane) = match task {
            LayoutTask::Row(row) => {
                rows.push(row);
                continue;
            }
            LayoutTask::Subtree { root, lane } => (root, lane),
        };
        // Pushed from the root to the tip, so taken from the tip to the root.
        let mut at = Some(root);
        while let Some(place) = at {
            tasks.push(LayoutTask::Row(TreeRow::Entry { lane, entry: place }));
            let next = trunk.next.get(place).copied().flatten();
            let children = entries
                .0
                .get(place)
                .map_or(&[][..], |entry| &entry.children);
            for child in children.iter().filter(|child| Some(**child) != next) {
                tasks.push(LayoutTask::Row(TreeRow::Join { lane }));
                tasks.push(LayoutTask::Subtree {
                    root: *child,
                    lane: lane + 1,
                });
            }
            at = next;
        }
    }
}

struct Trunks {
    /// For each entry the child that goes on in its lane.
    next: Vec<Option<usize>>,
    /// Whether the active branch leads through the entry.
    active: Vec<bool>,
}

fn find_trunks(entries: &TreeEntries) -> Trunks {
    let count = entries.0.len();
    let mut size = vec![1_usize; count];
    let mut active: Vec<bool> = entries.0.iter().map(|entry| entry.active).collect();
    let mut best: Vec<Option<(bool, usize, usize)>> = vec![None; count];
    // Children stand behind their parents, so from the back every entry is complete when it is met.
    for place in (0..count).rev() {
        let Some(parent) = entries.0.get(place).and_then(|entry| entry.parent) else {
            continue;
        };
        let own = size.get(place).copied().unwrap_or(1);
        let leads = active.get(place).copied().unwrap_or(false);
        if let Some(total) = size.get_mut(parent) {
            *total += own;
        }
        if let Some(through) = active.get_mut(parent) {
            *through |= leads;
        }
        if let Some(slot) = best.get_mut(parent) {
            let candidate = (leads, own, place);
            if slot.is_none_or(|known| (known.0, known.1) <= (leads, own)) {
                *slot = Some(candidate);
            }
        }
    }
    let next = best
        .into_iter()
        .map(|best| best.map(|(_, _, place)| place))
        .collect();
    Trunks { next, active }
}

/// Shortens long straight stretches in which nothing happens.
#[must_use]
pub fn elide_long_stretches(rows: Vec<TreeRow>, entries: &TreeEntries) -> Vec<TreeRow> {
    let plain = |row: &TreeRow| match row {
        TreeRow::Entry { lane, entry } => {
            let plain = entries.0.get(*entry).is_some_and(|entry| entry.is_plain());
            plain.then_some(*lane)
        }
        _ => None,
    };
    let mut out = Vec::with_capacity(rows.len());
    for stretch in rows.chunk_by(|a, b| plain(a).is_some() && plain(a) == plain(b)) {
        match stretch.first().and_then(plain) {
            Some(lane) if stretch.len() > LONG => {
                let hidden = stretch.len() - SHOWN_NEW - SHOWN_OLD;
                out.extend(stretch.iter().take(SHOWN_NEW));
                out.push(TreeRow::Elided {
                    lane,
                    entries: hidden,
                });
                out.extend(stretch.iter().skip(SHOWN_NEW + hidden));
            }
            _ => out.extend(stretch),
        }
    }
    out
}

/// The first `limit` entries, among them always the one where the active branch ends.
#[must_use]
pub fn first_entries(rows: &[TreeRow], entries: &TreeEntries, limit: usize) -> Vec<TreeRow> {
    let active = |row: &TreeRow| match row {
        TreeRow::Entry { entry, .. } => entries.0.get(*entry).is_some_and(|entry| entry.active),
        _ => false,
    };
    let mut cut = nth_entry(rows, limit);
    let place = rows.iter().position(active).filter(|place| *place >= cut);
    if place.is_some() {
        cut = nth_entry(rows, limit.saturating_sub(1));
    }
    let (shown, rest) = rows.split_at(cut);
    let mut out = shown.to_vec();
    let (between, rest) = rest.split_at(place.map_or(0, |place| place - cut));
    out.extend(hidden_row(between, entries));
    if let (Some(_), Some((active, rest))) = (place, rest.split_first()) {
        out.push(*active);
        out.extend(hidden_row(rest, entries));
    } else {
        out.extend(hidden_row(rest, entries));
    }
    out
}

/// The `limit` entries behind the one that has the node `after`, or the newest ones; `None` where no entry has it.
#[must_use]
pub fn page_of_entries(
    rows: &[TreeRow],
    entries: &TreeEntries,
    after: Option<NodeId>,
    limit: usize,
) -> Option<Vec<TreeRow>> {
    let has = |row: &TreeRow, id: NodeId| match row {
        TreeRow::Entry { entry, .. } => {
            let entry = entries.0.get(*entry);
            entry.is_some_and(|entry| entry.nodes.iter().any(|node| node.id == id))
        }
        _ => false,
    };
    let start = match after {
        Some(id) => 1 + rows.iter().position(|row| has(row, id))?,
        None => 0,
    };
    let rest = rows.get(start..)?;
    let (shown, rest) = rest.split_at(nth_entry(rest, limit));
    Some(
        shown
            .iter()
            .copied()
            .chain(hidden_row(rest, entries))
            .collect(),
    )
}

fn hidden_row(rows: &[TreeRow], entries: &TreeEntries) -> Option<TreeRow> {
    let (mut count, mut heads) = (0, 0);
    for row in rows {
        match row {
            TreeRow::Entry { entry, .. } => {
                let entry = entries.0.get(*entry);
                heads += usize::from(entry.is_some_and(|entry| !entry.branches.is_empty()));
                count += 1;
            }
            TreeRow::Elided { entries, .. } | TreeRow::Covered { entries, .. } => count += entries,
            TreeRow::Hidden { .. } | TreeRow::Join { .. } | TreeRow::Gap => {}
        }
    }
    (count > 0).then_some(TreeRow::Hidden {
        entries: count,
        heads,
    })
}

/// The place behind the first `count` entries and what joins them.
fn nth_entry(rows: &[TreeRow], count: usize) -> usize {
    let mut left = count;
    let over = |row: &TreeRow| {
        let is_entry = matches!(row, TreeRow::Entry { .. });
        let over = left == 0;
        left -= usize::from(is_entry && !over);
        over
    };
    rows.iter().position(over).unwrap_or(rows.len())
}
