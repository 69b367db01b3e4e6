//! The front half of a compile: from the path to weighed rounds.
//!
//! What it makes is kept in the scratch and extended when the path was: a history whose new items
//! need no repair, share no id with the old ones and are shown as they are is the old history with the new items behind it.
//! Whatever else happened, it is made anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_condense::Link;
use contexture_ir::{Cancel, ContentHash, Item, Origin};
use contexture_tokens::TokenBounds;
use contexture_wire::{RepairRules, call_id};
use indexmap::IndexMap;

use crate::blocks::{
    Lowerer, LoweringKey, Memo, ShownAs, ViewEntry, is_sound, repair_entries, select_for_model,
};
use crate::error::Refusal;
use crate::history::rounds::History;
use crate::history::view_policy::{ViewPolicy, ViewRequest};
use crate::input::{CompileInput, Cover, PathItem};
use crate::standing_rules::ItemStatements;
use contexture_report::{OmitReason, Repair, Rewriting, Rewritten};

/// The path, selected, repaired, lowered and weighed.
#[derive(Debug)]
pub(crate) struct PreparedHistory {
    pub(crate) history: History,
    /// Items that are not in the view, each with the reason: indexes on the path, ascending.
    pub(crate) hidden: Vec<(usize, OmitReason)>,
    /// What persons say about rules, in path order.
    pub(crate) statements: Vec<ItemStatements>,
    /// What repair left out: indexes on the path, ascending.
    pub(crate) dropped: Vec<usize>,
    pub(crate) repairs: Vec<Repair>,
    /// What is shown otherwise than it is, each with its entry, in their order.
    pub(crate) rewritten: Vec<(usize, Rewritten)>,
    /// What compactions stand for.
    pub(crate) compactions: Vec<ActiveCompaction>,
    /// What thinking takes that may not be sent any more.
    pub(crate) left_out_thinking: TokenBounds,
    /// Whether it is in order, each call with an id of its own.
    pub(crate) sound: bool,
    /// Whether the request must not have its model think.
    pub(crate) refuses_thinking: bool,
    lowering_key: LoweringKey,
    rules: RepairRules,
    view_policy: ViewPolicy,
    path: Vec<ItemIdentity>,
    /// By id of a call or an item: the first entry that has it.
    ids: IndexMap<String, usize>,
    /// How many items of the path the rounds before the newest may come from.
    settled: usize,
    /// How many entries that was learned from.
    scanned: usize,
}

/// A compaction in effect.
#[derive(Debug)]
pub(crate) struct ActiveCompaction {
    pub(crate) cover: Cover,
    /// What it stands for.
    pub(crate) tokens: TokenBounds,
}

impl PreparedHistory {
    /// Runs the passes that look at the path alone.
    pub(crate) fn build(
        input: &CompileInput<'_>,
        view_policy: &ViewPolicy,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Result<Self, Refusal> {
        let (path, asked) = (input.path, ViewRequest::from_input(input));
        let view = view_policy.build_view(path, 0, asked, lowerer, memo)?;
        let hidden = view.hidden;
        Cancel::check_optional(input.cancel)?;
        let repaired = repair_entries(view.entries, &repair_rules(lowerer));
        Cancel::check_optional(input.cancel)?;
        let mut front = Self {
            history: History::default(),
            view_policy: view_policy.clone(),
            settled: 0,
            scanned: 0,
            compactions: active_compactions(path, view_policy, &hidden, lowerer, memo),
            left_out_thinking: hidden
                .iter()
                .filter(|(_, why)| *why == OmitReason::BoundThinking)
                .filter_map(|(at, _)| path.get(*at))
                .map(|one| ViewEntry::new(Arc::clone(&one.item), one.hash, 0))
                .map(|entry| lowerer.count_item(&entry, memo))
                .sum(),
            hidden,
            statements: view.statements,
            dropped: repaired.dropped,
            repairs: repaired.repairs,
            rewritten: Vec::new(),
            sound: true,
            refuses_thinking: repaired.refuses_thinking,
            lowering_key: lowerer.lowering_key(),
            rules: lowerer.repair_rules(),
            path: path.iter().map(item_identity).collect(),
            ids: IndexMap::new(),
        };
        front.append_entries(path, repaired.entries, lowerer, memo);
        Ok(front)
    }

    /// Whether it was made for the same target and of a beginning of this path.
    pub(crate) fn is_reusable_for(
        &self,
        lowerer: &Lowerer<'_>,
        view_policy: &ViewPolicy,
        path: &[PathItem],
    ) -> bool {
        let known = path.get(..self.path.len());
        self.lowering_key == lowerer.lowering_key()
            && self.rules == lowerer.repair_rules()
            && self.view_policy == *view_policy
            && known.is_some_and(|known| {
                known
                    .iter()
                    .map(item_identity)
                    .eq(self.path.iter().copied())
            })
    }

    /// The same with what came after it on the path, if that can be told from the newest round on.
    pub(crate) fn extend_with_new_items(
        mut self,
        path: &[PathItem],
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Option<Self> {
        // The same path again, for instance after a refusal with another plan.
        if path.len() == self.path.len() {
            return Some(self);
        }
        let from = self.history.rounds.last()?.entries.start;
        let newest = self.history.entries.get(from..)?;
        // The newest round is made again: new items may join its last block, or answer its calls.
        let resume = newest.iter().filter_map(|entry| entry.source).min()?;
        // Items that moved (a compaction shown elsewhere, outputs paired by repair) make path order
        // and round order differ; then nothing can be cut off cleanly and all is made anew.
        let settled = resume >= self.settled && self.view_policy.affects_nothing_after(resume);
        if from == 0 || !settled || !self.history.has_fixed_opening(from) {
            return None;
        }
        let view = self
            .view_policy
            .build_view(
                path.get(resume..)?,
                resume,
                // Without passes, as those rule reuse out, and without cancelling: the new items are
                // few.
                ViewRequest::default(),
                lowerer,
                memo,
            )
            .ok()?;
        let rules = RepairRules {
            user_first: false,
            ..repair_rules(lowerer)
        };
        let repaired = repair_entries(view.entries, &rules);
        let new = |entry: &ViewEntry| self.has_new_ids(entry, from);
        // A repair of the new items could depend on old ones, and an id seen before could pair with an
        // old call.
        // What began the open round may be older than the newest items.
        if !repaired.repairs.is_empty()
            || repaired.refuses_thinking
            || !repaired.entries.iter().all(new)
        {
            return None;
        }
        self.refuses_thinking = false;
        self.path
            .extend(path.iter().skip(self.path.len()).map(item_identity));
        // What was said of the newest round is said anew by the passes above.
        self.hidden.retain(|(index, _)| *index < resume);
        self.hidden.extend(view.hidden);
        self.statements.retain(|one| one.index < resume);
        self.statements.extend(view.statements);
        self.dropped.retain(|index| *index < resume);
        self.repairs
            .retain(|repair| repair.index.is_none_or(|index| index < resume));
        self.history.remove_last_round();
        self.rewritten.retain(|(entry, _)| *entry < from);
        self.append_entries(path, repaired.entries, lowerer, memo);
        Some(self)
    }

    /// Whether nothing before the entry `from` has its ids. A provider's own items hide theirs.
    fn has_new_ids(&self, entry: &ViewEntry, from: usize) -> bool {
        let known = |id: &String| self.ids.get(id).is_some_and(|at| *at < from);
        !matches!(&*entry.item, Item::Extension(_)) && !entry_ids(entry).any(|id| known(&id))
    }

    fn append_entries(
        &mut self,
        path: &[PathItem],
        entries: Vec<ViewEntry>,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) {
        for (at, entry) in (self.history.entries.len()..).zip(&entries) {
            let rewritten = rewritten_entry(entry, path, lowerer, memo);
            self.rewritten.extend(rewritten.map(|one| (at, one)));
            for id in entry_ids(entry) {
                self.ids.entry(id).or_insert(at);
            }
        }
        let from = self.history.blocks.len();
        self.history.append_entries(entries, lowerer, memo);
        // The ids of what extends a history are new to it.
        let new = self.history.blocks.get(from..).unwrap_or_default();
        self.sound = self.sound && is_sound(new);
        let last = self
            .history
            .rounds
            .last()
            .map_or(0, |round| round.entries.start);
        let before = self
            .history
            .entries
            .get(self.scanned..last)
            .unwrap_or_default();
        let sources = before.iter().filter_map(|entry| entry.source);
        let newest = sources.max().map_or(0, |source| source + 1);
        // Learned from each round once, when it is no longer the newest, so extending stays
        // proportional to what is new.
        self.settled = self.settled.max(newest);
        self.scanned = last;
    }
}

/// How an entry differs from the item it is of.
fn rewritten_entry(
    entry: &ViewEntry,
    path: &[PathItem],
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Option<Rewritten> {
    let how = match entry.shown_as {
        ShownAs::Unchanged | ShownAs::Compaction => return None,
        ShownAs::Cleared => Rewriting::Cleared,
        ShownAs::Repeated => Rewriting::Repeated,
        ShownAs::Previewed => Rewriting::Previewed,
        ShownAs::ThinkingText => Rewriting::ThinkingText,
    };
    let index = entry.source?;
    let before = path.get(index)?;
    let whole = ViewEntry::new(Arc::clone(&before.item), before.hash, index);
    Some(Rewritten {
        index,
        rewriting: how,
        link: Link::new(before.hash).to_string(),
        tokens_before: lowerer.count_item(&whole, memo).high,
        tokens_after: lowerer.count_item(entry, memo).high,
    })
}

/// What each compaction in effect stands for: of its span what is not shown.
fn active_compactions(
    path: &[PathItem],
    view_policy: &ViewPolicy,
    hidden: &[(usize, OmitReason)],
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Vec<ActiveCompaction> {
    let away = hidden.iter().filter(|(_, why)| *why == OmitReason::Covered);
    let away: BTreeSet<usize> = away.map(|(index, _)| *index).collect();
    let covers = view_policy.active_covers().covers().iter();
    let weighed = covers.map(|cover| {
        let span = path.get(cover.first..=cover.last).unwrap_or_default();
        // What models may not read would not have been sent anyway, so the compaction does not stand
        // for it.
        let (entries, _) = select_for_model(span, cover.first);
        let gone = |entry: &&ViewEntry| entry.source.is_some_and(|index| away.contains(&index));
        let gone = entries.iter().filter(gone);
        ActiveCompaction {
            cover: *cover,
            tokens: gone.map(|entry| lowerer.count_item(entry, memo)).sum(),
        }
    });
    weighed.collect()
}

/// What the target demands, its end apart: contributions may follow, so how the request ends is
/// decided when they are placed.
fn repair_rules(lowerer: &Lowerer<'_>) -> RepairRules {
    RepairRules {
        user_last: false,
        ..lowerer.repair_rules()
    }
}

/// What of an item decides whether a kept history is of the same path.
type ItemIdentity = (ContentHash, bool, bool, Origin);

const fn item_identity(item: &PathItem) -> ItemIdentity {
    (item.hash, item.audience.model, item.pinned, item.origin)
}

/// The ids by which repair compares an entry with others, marked by their kind.
fn entry_ids(entry: &ViewEntry) -> impl Iterator<Item = String> {
    let call = call_id(&entry.item).map(|id| format!("call {id}"));
    let written = entry.call_id.as_ref().map(|id| format!("call {id}"));
    let own = entry.item.id().map(|id| format!("item {id}"));
    call.into_iter().chain(written).chain(own)
}
