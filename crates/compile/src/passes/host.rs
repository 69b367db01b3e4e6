//! Passes of the host's, at named points.
//!
//! They see items and give items; repair, budget and verification come after them, so whatever they do
//! the payload holds the post-condition or is refused. Not here: saying more (contributions) and
//! summarising (the engine's compactors), which have places of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use contexture_ir::{ContentHash, Item};

use crate::entry::ViewEntry;
use crate::report::document::OmitReason;

/// A pass of the host's over the history.
///
/// It must be a function of what it is given: a compile with it is one only then. With passes nothing of
/// an earlier compile's history is used again, counts and lowered blocks apart.
///
/// ```
/// use contexture_compile::{Pass, PassPoint, ViewItem};
/// use contexture_ir::Item;
///
/// /// Leaves thoughts out.
/// #[derive(Debug)]
/// struct NoThoughts;
///
/// impl Pass for NoThoughts {
///     fn name(&self) -> &str {
///         "no thoughts"
///     }
///
///     fn point(&self) -> PassPoint {
///         PassPoint::BeforeView
///     }
///
///     fn transform_items(&self, items: Vec<ViewItem>) -> Vec<ViewItem> {
///         let stays = |item: &ViewItem| !matches!(&*item.item, Item::Reasoning(_));
///         items.into_iter().filter(stays).collect()
///     }
/// }
/// ```
pub trait Pass: fmt::Debug + Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// Where it stands.
    fn point(&self) -> PassPoint;

    /// The items in their new form: some changed, left out, added, in another order.
    fn transform_items(&self, items: Vec<ViewItem>) -> Vec<ViewItem>;
}

/// Where a pass of the host's stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PassPoint {
    /// On what models may read, before anything is covered, cleared or previewed.
    BeforeView,
    /// On what is about to be repaired and weighed.
    AfterView,
}

/// An item of the view.
#[derive(Clone, Debug)]
pub struct ViewItem {
    /// The item.
    pub item: Arc<Item>,
    /// Its index on the path; `None` for what a pass adds. An item of the path that no pass gives back is
    /// reported as left out.
    pub index: Option<usize>,
}

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
            Some(own) if Arc::ptr_eq(&own.item, &one.item) => own,
            own => {
                let hash = ContentHash::of(one.item.to_json().as_bytes());
                let source = own.as_ref().and_then(|own| own.source);
                ViewEntry {
                    source,
                    pinned: own.is_some_and(|own| own.pinned),
                    ..ViewEntry::new(one.item, hash, 0)
                }
            }
        });
    }
    hidden.extend(known.into_keys().map(|index| (index, OmitReason::Host)));
    out
}
