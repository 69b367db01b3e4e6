//! Applies the covers in effect: what a compaction stands for is left out, and the compaction is shown
//! in its place.
//!
//! Compactions are not recognised by their text. One that names what it covers, in its field [`COVERS`],
//! was made by Contexture; it is shown where a cover says so and nowhere else, which is how a compaction
//! can be undone. Any other compaction comes from a provider and stays where it is.
//!
//! System and developer messages of the host are not history: they stay even inside a covered span, and so
//! does a round in which something is pinned.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{Item, Role};
use contexture_wire::Format;

use crate::blocks::{ShownAs, ViewEntry, group_into_rounds, split_into_blocks};
use crate::input::Cover;
use contexture_report::OmitReason;

/// The field in which a compaction made by Contexture names what it covers. Only its presence matters
/// here: it tells such a compaction from a provider's. The field is in our own namespace and is never
/// sent to a provider.
pub const COVERS: &str = "ctx:covers";

/// The covers in effect on a path. Of nested covers the outermost counts; covers that overlap an earlier
/// one or do not fit the path are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveCovers {
    /// Disjoint, in order of their first items.
    outer: Vec<Cover>,
    /// The index of each compaction, with that of the first item it stands for.
    view_indexes: BTreeMap<usize, usize>,
}

impl ActiveCovers {
    /// Finds the covers in effect on a path of `items` items; `compacts` tells which of them are compactions.
    #[must_use]
    pub fn from_covers(covers: &[Cover], items: usize, compacts: impl Fn(usize) -> bool) -> Self {
        let fits = |cover: &&Cover| {
            let span = cover.first..=cover.last;
            let is_on_path = cover.last < items && compacts(cover.compaction);
            // Covers come from stored state, which may be of another path or damaged: whatever does
            // not fit is ignored instead of refused.
            is_on_path && !span.is_empty() && !span.contains(&cover.compaction)
        };
        let mut sorted: Vec<Cover> = covers.iter().filter(fits).copied().collect();
        // Of covers that begin at the same item the widest comes first, of equally wide ones the newest.
        // An outer cover hides the inner ones, which stand for parts of the same span.
        sorted.sort_by_key(|cover| (cover.first, Reverse(cover.last), Reverse(cover.compaction)));
        let mut outer: Vec<Cover> = Vec::new();
        for cover in sorted {
            if outer.last().is_none_or(|before| cover.first > before.last) {
                outer.push(cover);
            }
        }
        let places = outer.iter().map(|cover| (cover.compaction, cover.first));
        Self {
            view_indexes: places.collect(),
            outer,
        }
    }

    /// Whether the covers change nothing at `index` or after it.
    pub(crate) fn affects_nothing_after(&self, index: usize) -> bool {
        let ends = |cover: &Cover| cover.last.max(cover.compaction) < index;
        self.outer.iter().all(ends)
    }

    /// Returns the covers in effect, in order of their first items.
    #[must_use]
    pub fn covers(&self) -> &[Cover] {
        &self.outer
    }

    /// Whether an item is a compaction in effect, and so is shown where its span begins.
    pub(crate) fn is_active_compaction(&self, index: usize) -> bool {
        self.view_indexes.contains_key(&index)
    }

    /// Returns the indexes of the items that the view for `target` shows, in the order of the view. `items`
    /// are those that models may read, with their indexes on the path.
    pub fn shown_indexes(
        &self,
        items: &[(usize, &Item)],
        pinned: impl Fn(usize) -> bool,
        target: Format,
    ) -> Vec<usize> {
        // A pin keeps its whole round: a pinned output without its call would be illegal for the
        // provider.
        let marked = items.iter();
        let marked = marked.map(|(index, item)| (*item, pinned(*index) && self.is_covered(*index)));
        let pinned_positions = pinned_rounds(marked, target);
        let places = items.iter().enumerate();
        let shown = places.filter(|(at, (index, item))| {
            pinned_positions.contains(at) || self.omit_reason(*index, item).is_none()
        });
        let mut shown: Vec<usize> = shown.map(|(_, (index, _))| *index).collect();
        shown.sort_by_key(|index| self.view_index(*index));
        shown
    }

    /// Why an item is not in the view, if it is not.
    fn omit_reason(&self, index: usize, item: &Item) -> Option<OmitReason> {
        // Messages of the host are instructions, not history: a summary must not replace them.
        if self.is_active_compaction(index) || is_host_message(item) {
            None
        } else if self.is_covered(index) {
            Some(OmitReason::Covered)
        } else {
            // A compaction of ours that no cover in effect names was undone, or a wider one replaces it.
            is_own_compaction(item).then_some(OmitReason::Uncovered)
        }
    }

    fn is_covered(&self, index: usize) -> bool {
        let at = self.outer.partition_point(|cover| cover.first <= index);
        let cover = at.checked_sub(1).and_then(|at| self.outer.get(at));
        cover.is_some_and(|cover| index <= cover.last)
    }

    /// Returns where an item stands in the view: at its own index or, for a compaction in effect, where its
    /// span begins.
    #[must_use]
    pub fn view_index(&self, index: usize) -> usize {
        self.view_indexes.get(&index).copied().unwrap_or(index)
    }
}

/// Leaves out what is covered and shows the compactions in its place. `entries` are in path order. Also returns what
/// was left out, with the reasons.
pub(crate) fn apply_covers(
    entries: Vec<ViewEntry>,
    covering: &ActiveCovers,
    target: Format,
) -> (Vec<ViewEntry>, Vec<(usize, OmitReason)>) {
    let marked = entries.iter().map(|entry| {
        let covered = |index| covering.is_covered(index);
        (
            &*entry.item,
            entry.pinned && entry.source.is_some_and(covered),
        )
    });
    let pinned = pinned_rounds(marked, target);
    let mut hidden = Vec::new();
    let mut kept: Vec<ViewEntry> = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        let why = entry.source.and_then(|index| {
            let why = covering.omit_reason(index, &entry.item)?;
            Some((index, why))
        });
        let why = why.filter(|_| !pinned.contains(&at));
        match why {
            Some(why) => hidden.push(why),
            None if entry
                .source
                .is_some_and(|index| covering.is_active_compaction(index)) =>
            {
                kept.push(shown_compaction(&entry));
            }
            None => kept.push(entry),
        }
    }
    // A stable sort, so that several entries at one index keep their order. Compactions move to where their
    // span begins; without covers the path order is the order of the view.
    if !covering.outer.is_empty() {
        kept.sort_by_key(|entry| entry.source.map_or(0, |index| covering.view_index(index)));
    }
    (kept, hidden)
}

/// Returns the positions in `items` of all items, except compactions, whose round contains a covered item
/// that is pinned. Each item comes with whether it is covered and pinned.
fn pinned_rounds<'i>(
    items: impl Iterator<Item = (&'i Item, bool)> + Clone,
    target: Format,
) -> BTreeSet<usize> {
    if !items.clone().any(|(_, pinned)| pinned) {
        return BTreeSet::new();
    }
    let (items, pinned): (Vec<&Item>, Vec<bool>) = items.unzip();
    let blocks = split_into_blocks(items.iter().copied(), target);
    let rounds = group_into_rounds(blocks.iter().map(|block| block.class));
    let ends = rounds.iter().filter_map(|round| {
        let blocks = blocks.get(round.clone())?;
        Some(blocks.first()?.items.start..blocks.last()?.items.end)
    });
    let is_not_compaction =
        |at: &usize| !matches!(items.get(*at), None | Some(Item::Compaction(_)));
    ends.filter(|round| {
        let own = pinned.get(round.clone());
        own.is_some_and(|own| own.contains(&true))
    })
    .flatten()
    .filter(is_not_compaction)
    .collect()
}

/// A compaction as it is sent: without the field that names what it covers.
fn shown_compaction(entry: &ViewEntry) -> ViewEntry {
    let mut item = Item::clone(&entry.item);
    if let Item::Compaction(compaction) = &mut item {
        // The field is our bookkeeping, and a provider may refuse a field that it does not know.
        compaction.extra.remove(COVERS);
    }
    entry.with_item(item, ShownAs::Compaction)
}

/// Whether an item is a compaction that names what it covers.
fn is_own_compaction(item: &Item) -> bool {
    matches!(item, Item::Compaction(compaction) if compaction.extra.get(COVERS).is_some())
}

/// Whether an item is a system or developer message inside the history.
fn is_host_message(item: &Item) -> bool {
    let host = |role| matches!(role, Role::System | Role::Developer);
    matches!(item, Item::Message(message) if host(message.role))
}

#[cfg(test)]
mod tests {
    use contexture_ir::{Compaction, ContentHash, Message, Part, Raw, Role};
    use std::sync::Arc;

    use super::*;

    fn path(covering: &[usize], items: usize) -> Vec<ViewEntry> {
        (0..items)
            .map(|index| {
                let item: Item = if covering.contains(&index) {
                    let mut compaction = Compaction {
                        summary: vec![Part::input_text("all that")],
                        ..Compaction::default()
                    };
                    compaction.extra.set(COVERS, Raw::null());
                    compaction.into()
                } else {
                    Message::text(Role::User, index.to_string()).into()
                };
                ViewEntry::new(Arc::new(item), ContentHash::of(&[0]), index)
            })
            .collect()
    }

    #[track_caller]
    fn check(covers: &[(usize, usize, usize)], shown: &[usize], uncovered: &[usize]) {
        let covers: Vec<Cover> = covers
            .iter()
            .map(|&(compaction, first, last)| Cover {
                compaction,
                first,
                last,
            })
            .collect();
        let (entries, hidden) = apply_covers(
            path(&[5, 8], 10),
            &ActiveCovers::from_covers(&covers, 10, |at| [5, 8].contains(&at)),
            Format::OpenAiChat,
        );
        let sources: Vec<usize> = entries.iter().filter_map(|entry| entry.source).collect();
        assert_eq!(sources, shown, "{covers:?}");
        assert_eq!(sources.len() + hidden.len(), 10);
        let away = hidden
            .iter()
            .filter(|(_, why)| *why == OmitReason::Uncovered);
        assert_eq!(away.map(|(index, _)| *index).collect::<Vec<_>>(), uncovered);
    }

    #[test]
    fn a_compaction_stands_where_what_it_covers_stood() {
        check(&[], &[0, 1, 2, 3, 4, 6, 7, 9], &[5, 8]);
        check(&[(5, 1, 3)], &[0, 5, 4, 6, 7, 9], &[8]);
        check(&[(5, 0, 4), (8, 6, 7)], &[5, 8, 9], &[]);
        // The wider one counts, and the narrower one is not shown.
        check(&[(5, 0, 3), (8, 0, 7)], &[8, 9], &[]);
        check(&[(5, 1, 2), (8, 0, 3)], &[8, 4, 6, 7, 9], &[5]);
    }

    #[test]
    fn covers_that_fit_no_path_are_ignored() {
        check(
            &[(5, 3, 1), (5, 4, 6), (12, 0, 1), (5, 0, 10)],
            &[0, 1, 2, 3, 4, 6, 7, 9],
            &[5, 8],
        );
        // The second overlaps the first.
        check(&[(5, 0, 2), (8, 2, 4)], &[5, 3, 4, 6, 7, 9], &[8]);
    }
}
