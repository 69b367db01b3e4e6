//! Shows long outputs as previews: how is [`crate::preview`]'s business.
//!
//! What a preview says follows from the output's bytes and the policy alone. From when on outputs are previewed is
//! the plan's; from then on each is, from the first time it is sent.

use contexture_ir::FunctionCall;

use crate::answers::calls;
use crate::entry::{Entry, Shown};
use crate::preview::Previewer;

/// Previews the outputs that are shown as they are. Entries are in the order of the view.
pub(crate) fn preview(entries: &mut [Entry], previewer: &Previewer<'_>) {
    for (at, preview) in previews(entries, previewer) {
        if let Some(entry) = entries.get_mut(at) {
            *entry = preview;
        }
    }
}

/// Those previews, each with the place of what it stands for.
pub(crate) fn previews(entries: &[Entry], previewer: &Previewer<'_>) -> Vec<(usize, Entry)> {
    let calls = calls(entries);
    let own = |(at, entry): (usize, &Entry)| {
        let whole = entry.shown == Shown::Whole && !entry.pinned;
        let item = whole.then_some(&entry.item)?;
        let call: Option<&FunctionCall> = calls.get(&at).copied();
        let name = call.map(|call| call.name.as_str());
        let previewed = previewer.item(item, entry.hash, name)?;
        Some((at, entry.replaced(previewed.item, Shown::Previewed)))
    };
    entries.iter().enumerate().filter_map(own).collect()
}
