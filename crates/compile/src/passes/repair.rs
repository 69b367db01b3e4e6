//! Makes a history one that the provider accepts, before it is weighed: what is budgeted is what is
//! sent, and what an item becomes does not depend on where the history is cut later.

use std::borrow::Cow;

use contexture_ir::{ContentHash, Item};
use contexture_wire::Dialect;

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
pub(crate) fn repair<'a>(items: &[(&'a Item, ContentHash)], _dialect: Dialect) -> Repaired<'a> {
    Repaired {
        entries: items
            .iter()
            .enumerate()
            .map(|(index, (item, hash))| Entry {
                item: Cow::Borrowed(*item),
                hash: *hash,
                source: Some(index),
                call_id: None,
            })
            .collect(),
        ..Repaired::default()
    }
}
