//! Runs the passes of the host at one point of the view.
//!
//! Not here: what a pass is (`input`), and when each point is reached (`view_policy`).

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{ContentHash, Origin};

use crate::blocks::ViewEntry;
use crate::input::{Pass, PassPoint, ViewItem};
use contexture_report::OmitReason;

/// Runs the passes of a point.
pub(crate) fn run_host_passes(
    mut entries: Vec<ViewEntry>,
    passes: &[&dyn Pass],
    point: PassPoint,
) -> (Vec<ViewEntry>, Vec<(usize, OmitReason)>) {
    let mut hidden = Vec::new();
    for pass in passes.iter().filter(|pass| pass.point() == point) {
        let items = entries.iter().map(|entry| ViewItem {
            item: Arc::clone(&entry.item),
            index: entry.source,
        });
        let given = pass.transform_items(items.collect());
        entries = apply_returned_items(entries, given, &mut hidden);
    }
    (entries, hidden)
}

/// The entries that a pass gave back; an index it gives twice, or was not given, counts as none.
fn apply_returned_items(
    before: Vec<ViewEntry>,
    given: Vec<ViewItem>,
    hidden: &mut Vec<(usize, OmitReason)>,
) -> Vec<ViewEntry> {
    let mut known: BTreeMap<usize, ViewEntry> = before
        .into_iter()
        .filter_map(|entry| Some((entry.source?, entry)))
        .collect();
    let mut out = Vec::with_capacity(given.len());
    for one in given {
        let own = one.index.and_then(|index| known.remove(&index));
        out.push(match own {
            // The same allocation means an untouched item: its hash and how it is shown stay valid.
            Some(own) if Arc::ptr_eq(&own.item, &one.item) => own,
            own => {
                let hash = ContentHash::of(one.item.to_json().as_bytes());
                let source = own.as_ref().and_then(|own| own.source);
                // What a pass adds is the host's.
                let origin = own.as_ref().map_or(Origin::System, |own| own.origin);
                ViewEntry {
                    source,
                    origin,
                    pinned: own.is_some_and(|own| own.pinned),
                    ..ViewEntry::new(one.item, hash, 0)
                }
            }
        });
    }
    // Whatever a pass did not give back is reported, so nothing disappears in silence.
    hidden.extend(known.into_keys().map(|index| (index, OmitReason::Host)));
    out
}
