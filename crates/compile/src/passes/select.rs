//! Which items of the path models may read at all, and in whose clothes.

use std::sync::Arc;

use contexture_ir::{Compaction, ContentHash, Item};
use contexture_wire::{Format, Side, side};

use crate::entry::Entry;
use crate::report::OmitReason;
use crate::request::PathItem;

/// Leaves out what is not meant for models, by audience, and bookkeeping, by its type. `first` is the
/// index of the first item on the whole path.
pub(crate) fn select(
    path: &[PathItem],
    first: usize,
    format: Format,
) -> (Vec<Entry>, Vec<(usize, OmitReason)>) {
    let (mut entries, mut hidden) = (Vec::with_capacity(path.len()), Vec::new());
    for (index, item) in (first..).zip(path) {
        if !item.audience.model {
            hidden.push((index, OmitReason::Audience));
        } else if item.item.kind().starts_with("ctx:") {
            hidden.push((index, OmitReason::Bookkeeping));
        } else if let Some(adapted) = adapt(&item.item, format) {
            let hash = ContentHash::of(adapted.to_json().as_bytes());
            entries.push(Entry::new(Arc::new(adapted), hash, index));
        } else {
            entries.push(Entry::new(Arc::clone(&item.item), item.hash, index));
        }
    }
    (entries, hidden)
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
