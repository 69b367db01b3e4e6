//! Which items of the path models may read at all, and in whose clothes.

use std::collections::BTreeMap;

use contexture_ir::{Compaction, ContentHash, Item};
use contexture_wire::{Format, Side, side};

use crate::report::OmitReason;
use crate::request::PathItem;

/// The path's items that stay, and those that do not.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    /// Indexes on the path.
    pub(crate) visible: Vec<usize>,
    /// Indexes on the path, ascending.
    pub(crate) hidden: Vec<(usize, OmitReason)>,
    /// Items that stand for those of the path, by index.
    adapted: BTreeMap<usize, (Item, ContentHash)>,
}

impl Selected {
    /// The visible items in order, with their hashes.
    pub(crate) fn items<'a>(&'a self, path: &'a [PathItem]) -> Vec<(&'a Item, ContentHash)> {
        self.visible
            .iter()
            .filter_map(|index| match self.adapted.get(index) {
                Some((item, hash)) => Some((item, *hash)),
                None => path.get(*index).map(|entry| (&*entry.item, entry.hash)),
            })
            .collect()
    }
}

/// Leaves out what is not meant for models: by audience, and bookkeeping by its type.
pub(crate) fn select(path: &[PathItem], format: Format) -> Selected {
    let mut selected = Selected {
        visible: Vec::with_capacity(path.len()),
        ..Selected::default()
    };
    for (index, entry) in path.iter().enumerate() {
        if !entry.audience.model {
            selected.hidden.push((index, OmitReason::Audience));
            continue;
        }
        if entry.item.kind().starts_with("ctx:") {
            selected.hidden.push((index, OmitReason::Bookkeeping));
            continue;
        }
        selected.visible.push(index);
        if let Some(item) = adapt(&entry.item, format) {
            let hash = ContentHash::of(item.to_json().as_bytes());
            selected.adapted.insert(index, (item, hash));
        }
    }
    selected
}

/// The item as the target must see it, where that differs: a compaction that its own provider writes
/// into the model's turn is, for every other, said to the model; it must not stand inside a step.
pub(crate) fn adapt(item: &Item, format: Format) -> Option<Item> {
    let Item::Compaction(compaction) = item else {
        return None;
    };
    let foreign = format != Format::Anthropic && side(item) == Some(Side::Model);
    foreign.then(|| {
        Item::from(Compaction {
            format: None,
            ..compaction.clone()
        })
    })
}
