//! The front half of a compile: from the path to weighed rounds.
//!
//! What it makes is kept in the scratch and extended when the path was: a history whose new items
//! need no repair and share no id with the old ones is the old history with the new items behind it.
//! Whatever else happened, it is made anew.

use contexture_ir::{ContentHash, Item};
use contexture_wire::{RepairRules, call_id};
use indexmap::IndexMap;

use crate::entry::Entry;
use crate::history::History;
use crate::memo::Memo;
use crate::passes::lower::Press;
use crate::passes::repair::repair;
use crate::passes::select::select;
use crate::report::{OmitReason, Repair};
use crate::request::PathItem;

/// The path, selected, repaired, lowered and weighed.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) history: History,
    /// What models may not read: indexes on the path, ascending.
    pub(crate) hidden: Vec<(usize, OmitReason)>,
    /// What repair left out: indexes on the path, ascending.
    pub(crate) dropped: Vec<usize>,
    pub(crate) repairs: Vec<Repair>,
    made_for: (u32, u32),
    path: Vec<(ContentHash, bool)>,
    /// By id of a call or an item: the first entry that has it.
    ids: IndexMap<String, usize>,
    /// Whether repair left the items in their order.
    in_order: bool,
}

impl Front {
    /// Runs the passes that look at the path alone.
    pub(crate) fn build(path: &[PathItem], press: &Press<'_>, memo: &mut Memo) -> Self {
        let (entries, hidden) = select(path, 0);
        let repaired = repair(entries, &rules(press));
        let sources = repaired.entries.iter().filter_map(|entry| entry.source);
        let mut front = Self {
            in_order: sources.is_sorted(),
            history: History::default(),
            hidden,
            dropped: repaired.dropped,
            repairs: repaired.repairs,
            made_for: press.variants(),
            path: path.iter().map(identity).collect(),
            ids: IndexMap::new(),
        };
        front.append(repaired.entries, press, memo);
        front
    }

    /// Whether it was made for the same target and of a beginning of this path.
    pub(crate) fn fits(&self, press: &Press<'_>, path: &[PathItem]) -> bool {
        let known = path.get(..self.path.len());
        self.made_for == press.variants()
            && known.is_some_and(|known| known.iter().map(identity).eq(self.path.iter().copied()))
    }

    /// The same with what came after it on the path, if that can be told from the newest round on.
    pub(crate) fn extended(
        mut self,
        path: &[PathItem],
        press: &Press<'_>,
        memo: &mut Memo,
    ) -> Option<Self> {
        if path.len() == self.path.len() {
            return Some(self);
        }
        let from = self.history.rounds.last()?.entries.start;
        let resume = self.history.entries.get(from)?.source?;
        if !self.in_order || from == 0 {
            return None;
        }
        let (entries, hidden) = select(path.get(resume..)?, resume);
        let rules = RepairRules {
            user_first: false,
            ..rules(press)
        };
        let repaired = repair(entries, &rules);
        let sources = repaired.entries.iter().filter_map(|entry| entry.source);
        let clean = repaired.repairs.is_empty() && sources.is_sorted();
        if !clean
            || !repaired
                .entries
                .iter()
                .all(|entry| self.is_new(entry, from))
        {
            return None;
        }
        self.path
            .extend(path.iter().skip(self.path.len()).map(identity));
        self.hidden.retain(|(index, _)| *index < resume);
        self.hidden.extend(hidden);
        self.dropped.retain(|index| *index < resume);
        self.repairs
            .retain(|repair| repair.index.is_none_or(|index| index < resume));
        self.history.forget_last_round();
        self.append(repaired.entries, press, memo);
        Some(self)
    }

    /// Whether nothing before the entry `from` has its ids. A provider's own items hide theirs.
    fn is_new(&self, entry: &Entry, from: usize) -> bool {
        let known = |id: &String| self.ids.get(id).is_some_and(|at| *at < from);
        !matches!(&*entry.item, Item::Extension(_)) && !ids(entry).any(|id| known(&id))
    }

    fn append(&mut self, entries: Vec<Entry>, press: &Press<'_>, memo: &mut Memo) {
        for (at, entry) in (self.history.entries.len()..).zip(&entries) {
            for id in ids(entry) {
                self.ids.entry(id).or_insert(at);
            }
        }
        self.history.append(entries, press, memo);
    }
}

/// What the target demands, its end apart: contributions may follow, so how the request ends is
/// decided when they are placed.
fn rules(press: &Press<'_>) -> RepairRules {
    RepairRules {
        user_last: false,
        ..RepairRules::for_format(press.dialect().format)
    }
}

/// What of an item decides whether a kept history is of the same path.
fn identity(item: &PathItem) -> (ContentHash, bool) {
    (item.hash, item.audience.model)
}

/// The ids by which repair compares an entry with others, marked by their kind.
fn ids(entry: &Entry) -> impl Iterator<Item = String> {
    let call = call_id(&entry.item).map(|id| format!("call {id}"));
    let written = entry.call_id.as_ref().map(|id| format!("call {id}"));
    let own = entry.item.id().map(|id| format!("item {id}"));
    call.into_iter().chain(written).chain(own)
}
