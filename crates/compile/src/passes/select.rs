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
        if let Item::Compaction(compaction) = &*entry.item
            && format != Format::Anthropic
            && side(&entry.item) == Some(Side::Model)
        {
            selected
                .adapted
                .insert(index, said_to_the_model(compaction));
        }
    }
    selected
}

/// A compaction that its own provider writes into the model's turn is, for every other, said to the
/// model; there it must not stand inside a step.
fn said_to_the_model(compaction: &Compaction) -> (Item, ContentHash) {
    let item = Item::from(Compaction {
        format: None,
        ..compaction.clone()
    });
    let hash = ContentHash::of(item.to_json().as_bytes());
    (item, hash)
}
