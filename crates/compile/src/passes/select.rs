//! Which items of the path models may read at all. How a target is told of them is the wire crate's
//! business.

use std::sync::Arc;

use crate::entry::ViewEntry;
use crate::report::document::OmitReason;
use crate::request::PathItem;

/// Leaves out what is not meant for models, by audience, and bookkeeping, by its type. `first` is the
/// index of the first item on the whole path.
pub(crate) fn select_for_model(
    path: &[PathItem],
    first: usize,
) -> (Vec<ViewEntry>, Vec<(usize, OmitReason)>) {
    let (mut entries, mut hidden) = (Vec::with_capacity(path.len()), Vec::new());
    for (index, item) in (first..).zip(path) {
        if !item.audience.model {
            hidden.push((index, OmitReason::Audience));
        } else if item.item.kind().starts_with("ctx:") {
            hidden.push((index, OmitReason::Bookkeeping));
        } else {
            entries.push(ViewEntry {
                pinned: item.pinned,
                ..ViewEntry::new(Arc::clone(&item.item), item.hash, index)
            });
        }
    }
    (entries, hidden)
}
