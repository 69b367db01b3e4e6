//! Shows long outputs as previews: how is [`contexture_condense`]'s business.
//!
//! What a preview says follows from the output's bytes and the policy alone. From when on outputs are previewed is
//! the plan's; from then on each is, from the first time it is sent.

use contexture_condense::Previewer;
use contexture_ir::FunctionCall;

use crate::blocks::{ShownAs, ViewEntry, calls_by_output};

/// Previews the outputs that are shown as they are. Entries are in the order of the view.
pub(crate) fn preview_outputs(entries: &mut [ViewEntry], previewer: &Previewer<'_>) {
    for (at, preview) in output_previews(entries, previewer) {
        if let Some(entry) = entries.get_mut(at) {
            *entry = preview;
        }
    }
}

/// Those previews, each with the place of what it stands for.
pub(crate) fn output_previews(
    entries: &[ViewEntry],
    previewer: &Previewer<'_>,
) -> Vec<(usize, ViewEntry)> {
    let calls = calls_by_output(entries);
    let own = |(at, entry): (usize, &ViewEntry)| {
        // A placeholder is shorter than a preview, and a pinned output stays whole.
        let whole = entry.shown_as == ShownAs::Unchanged && !entry.pinned;
        let item = whole.then_some(&entry.item)?;
        let call: Option<&FunctionCall> = calls.get(&at).copied();
        // Policies may differ by tool; an output without a call follows the general one.
        let name = call.map(|call| call.name.as_str());
        let stored = entry.is_stored.then_some(entry.hash);
        let previewed = previewer.preview_item(item, stored, name)?;
        Some((at, entry.with_item(previewed.item, ShownAs::Previewed)))
    };
    entries.iter().enumerate().filter_map(own).collect()
}
