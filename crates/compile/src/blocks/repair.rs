//! Makes a history one that the provider accepts, before it is weighed: what is budgeted is what is
//! sent, and what an item becomes does not depend on where the history is cut later.
//!
//! How is the wire crate's business.

use std::borrow::Cow;
use std::sync::Arc;

use contexture_ir::{ContentHash, Item, Origin};
use contexture_wire::{Issue, RepairRules, repair as mend};

use crate::blocks::view_entry::{ShownAs, ViewEntry};
use contexture_report::Repair;

/// A repaired history.
#[derive(Debug, Default)]
pub(crate) struct RepairedEntries {
    pub(crate) entries: Vec<ViewEntry>,
    /// The sources of what was left out, ascending.
    pub(crate) dropped: Vec<usize>,
    pub(crate) repairs: Vec<Repair>,
    /// Whether the request must not have its model think.
    pub(crate) refuses_thinking: bool,
}

/// Repairs entries as they came.
pub(crate) fn repair_entries(entries: Vec<ViewEntry>, rules: &RepairRules) -> RepairedEntries {
    let list: Vec<&Item> = entries.iter().map(|entry| &*entry.item).collect();
    let mended = mend(&list, rules);
    // What repair drops is not listed by it; it is whatever has no successor among the repaired items.
    let mut kept = vec![false; entries.len()];
    let mut out = Vec::with_capacity(mended.items.len());
    for repaired in mended.items {
        if let Some(kept) = repaired.source.and_then(|at| kept.get_mut(at)) {
            *kept = true;
        }
        let own = repaired.source.and_then(|at| entries.get(at));
        let source = own.and_then(|own| own.source);
        let (item, hash) = match (repaired.item, own) {
            // Untouched items keep their allocation and their hash: hashing the JSON of every item
            // anew would cost more than the repair.
            (Cow::Borrowed(_), Some(own)) => (Arc::clone(&own.item), own.hash),
            (item, _) => {
                let hash = ContentHash::of(item.to_json().as_bytes());
                (Arc::new(item.into_owned()), hash)
            }
        };
        out.push(ViewEntry {
            item,
            hash,
            source,
            call_id: repaired.call_id,
            pinned: own.is_some_and(|own| own.pinned),
            is_stored: own.is_some_and(|own| own.is_stored),
            origin: own.map_or(Origin::System, |own| own.origin),
            shown_as: own.map_or(ShownAs::Unchanged, |own| own.shown_as),
        });
    }
    let source = |at: usize| entries.get(at).and_then(|entry| entry.source);
    let gone = kept.iter().enumerate().filter(|(_, kept)| !**kept);
    let repairs = mended.issues.into_iter().map(|issue| {
        let index = source(issue.index);
        repair_row(issue, index)
    });
    RepairedEntries {
        dropped: gone.filter_map(|(at, _)| source(at)).collect(),
        repairs: repairs.collect(),
        entries: out,
        refuses_thinking: mended.refuses_thinking,
    }
}

/// The report's row for an issue of an item at an index on the path, if it concerns one.
pub(crate) fn repair_row(issue: Issue, index: Option<usize>) -> Repair {
    Repair {
        index,
        what: issue.kind.as_str().to_owned(),
        reason: issue.what,
    }
}
