//! Makes a history one that the provider accepts, before it is weighed: what is budgeted is what is
//! sent, and what an item becomes does not depend on where the history is cut later.
//!
//! How is the wire crate's business.

use std::borrow::Cow;

use contexture_ir::{ContentHash, Item};
use contexture_wire::{RepairRules, repair as mend};

use crate::report::Repair;

/// An item on its way into the payload.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) item: Cow<'a, Item>,
    /// The hash of the item as it stands here.
    pub(crate) hash: ContentHash,
    /// Its index in what was repaired; `None` for what repair made up.
    pub(crate) source: Option<usize>,
    /// The call id to write instead of the item's own.
    pub(crate) call_id: Option<String>,
}

/// A repaired history.
#[derive(Debug, Default)]
pub(crate) struct Repaired<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    /// Indexes of what was left out, ascending.
    pub(crate) dropped: Vec<usize>,
    pub(crate) repairs: Vec<Repair>,
}

/// Repairs items, each given with its content hash.
pub(crate) fn repair<'a>(items: &[(&'a Item, ContentHash)], rules: &RepairRules) -> Repaired<'a> {
    let list: Vec<&Item> = items.iter().map(|(item, _)| *item).collect();
    let mended = mend(&list, rules);
    let mut kept = vec![false; items.len()];
    let mut entries = Vec::with_capacity(mended.items.len());
    for repaired in mended.items {
        if let Some(kept) = repaired.source.and_then(|at| kept.get_mut(at)) {
            *kept = true;
        }
        let own = repaired.source.and_then(|at| items.get(at));
        entries.push(Entry {
            hash: match (&repaired.item, own) {
                (Cow::Borrowed(_), Some((_, hash))) => *hash,
                (item, _) => ContentHash::of(item.to_json().as_bytes()),
            },
            item: repaired.item,
            source: repaired.source,
            call_id: repaired.call_id,
        });
    }
    let gone = kept.iter().enumerate().filter(|(_, kept)| !**kept);
    Repaired {
        entries,
        dropped: gone.map(|(at, _)| at).collect(),
        repairs: mended
            .issues
            .into_iter()
            .map(|issue| Repair {
                index: (issue.index < items.len()).then_some(issue.index),
                what: issue.kind.as_str().to_owned(),
                why: issue.what,
            })
            .collect(),
    }
}
