//! Which items of the path models may read at all.

use crate::report::OmitReason;
use crate::request::PathItem;

/// The path's items that stay, and those that do not.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    /// Indexes on the path.
    pub(crate) visible: Vec<usize>,
    /// Indexes on the path, ascending.
    pub(crate) hidden: Vec<(usize, OmitReason)>,
}

/// Leaves out what is not meant for models: by audience, and bookkeeping by its type.
pub(crate) fn select(path: &[PathItem]) -> Selected {
    let mut selected = Selected {
        visible: Vec::with_capacity(path.len()),
        hidden: Vec::new(),
    };
    for (index, entry) in path.iter().enumerate() {
        if !entry.audience.model {
            selected.hidden.push((index, OmitReason::Audience));
        } else if entry.item.kind().starts_with("ctx:") {
            selected.hidden.push((index, OmitReason::Bookkeeping));
        } else {
            selected.visible.push(index);
        }
    }
    selected
}
