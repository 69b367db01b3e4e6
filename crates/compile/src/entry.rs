//! An item between the path and the payload.

use std::sync::Arc;

use contexture_ir::{ContentHash, Item};

/// An item on its way into the payload.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) item: Arc<Item>,
    /// The hash of the item as it stands here.
    pub(crate) hash: ContentHash,
    /// Where it comes from: an index on the path; `None` for what repair made up.
    pub(crate) source: Option<usize>,
    /// The call id to write instead of the item's own.
    pub(crate) call_id: Option<String>,
}

impl Entry {
    /// An item as it came.
    pub(crate) const fn new(item: Arc<Item>, hash: ContentHash, source: usize) -> Self {
        Self {
            item,
            hash,
            source: Some(source),
            call_id: None,
        }
    }
}
