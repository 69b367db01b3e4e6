//! The front half of a compile: from the path to weighed rounds.
//!
//! What it makes is kept in the scratch and extended when the path was: a history whose new items
//! need no repair, share no id with the old ones and are shown as they are is the old history with the new items behind it.
//! Whatever else happened, it is made anew.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use contexture_condense::Link;
use contexture_ir::{Cancel, Item};
use contexture_tokens::TokenBounds;
use contexture_wire::{Loss, RepairRules, call_id};
use indexmap::IndexMap;

use crate::blocks::{
    LoweredBlock, Lowerer, LoweringKey, Memo, ShownAs, ViewEntry, is_sound, repair_entries,
    select_for_model,
};
use crate::error::Refusal;
use crate::growing::{GrowingList, RangeSums, Totals};
use crate::history::rounds::History;
use crate::history::trim::TrimmedItems;
use crate::history::view_policy::{ViewPolicy, ViewRequest};
use crate::input::{CompileInput, Cover, ItemIdentity, KnownBeginning, PathItem, PathItems};
use crate::standing_rules::FoundRules;
use contexture_report::{OmitReason, Repair, Rewriting, Rewritten};

/// The path, selected, repaired, lowered and weighed.
#[derive(Debug)]
pub(crate) struct PreparedHistory {
    pub(crate) history: History,
    /// Items that are not in the view, each with the reason: indexes on the path, ascending.
    pub(crate) hidden: GrowingList<(usize, OmitReason)>,
    /// How many of them are thinking that may not be sent any more, and their first and last index.
    pub(crate) bound_thinking: Option<(usize, (usize, usize))>,
    /// What persons say about rules.
    pub(crate) rules: FoundRules,
    /// What repair left out: indexes on the path, ascending.
    pub(crate) dropped: Arc<Vec<usize>>,
    pub(crate) repairs: Arc<Vec<Repair>>,
    /// Behind the last item that repair left out or changed.
    repaired_until: usize,
    /// What is shown otherwise than it is, in the order of its entries.
    pub(crate) rewritten: GrowingList<Rewritten>,
    /// The entries of those.
    rewritten_entries: Vec<usize>,
    rewritten_totals: RangeSums<RewrittenTotals>,
    /// What the target cannot say of the history, each with its block.
    pub(crate) losses: GrowingList<(usize, Loss)>,
    /// What compactions stand for.
    pub(crate) compactions: Vec<ActiveCompaction>,
    /// What thinking takes that may not be sent any more.
    pub(crate) left_out_thinking: TokenBounds,
    /// Whether it is in order, each call with an id of its own.
    pub(crate) sound: bool,
    /// Whether the request must not have its model think.
    pub(crate) refuses_thinking: bool,
    /// How many items of the path were looked at to make it.
    pub(crate) items_read: usize,
    lowering_key: LoweringKey,
    repair_rules: RepairRules,
    view_policy: ViewPolicy,
    path: Vec<ItemIdentity>,
    /// A beginning by which the path is known without looking at its items.
    beginning: Option<KnownBeginning>,
    /// By id of a call or an item: the first entry that has it.
    ids: IndexMap<String, usize>,
    /// How many items of the path the rounds before the newest may come from.
    settled: usize,
    /// How many entries that was learned from.
    scanned: usize,
}

/// Sums over what is shown otherwise than it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RewrittenTotals {
    pub(crate) cleared: u64,
    pub(crate) repeated: u64,
    pub(crate) thoughts: u64,
    pub(crate) previewed: u64,
    /// The tokens that it saves.
    pub(crate) saved: u64,
}

impl RewrittenTotals {
    fn of(one: &Rewritten) -> Self {
        let mut own = Self {
            saved: one.tokens_before.saturating_sub(one.tokens_after),
            ..Self::default()
        };
        match one.rewriting {
            Rewriting::Cleared => own.cleared = 1,
            Rewriting::Repeated => own.repeated = 1,
            Rewriting::Previewed => own.previewed = 1,
            // The report's words for what is neither.
            _ => own.thoughts = 1,
        }
        own
    }
}

impl Totals for RewrittenTotals {
    fn add(&mut self, other: &Self) {
        self.cleared += other.cleared;
        self.repeated += other.repeated;
        self.thoughts += other.thoughts;
        self.previewed += other.previewed;
        self.saved = self.saved.saturating_add(other.saved);
    }
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
        let (path, asked) = (input.path.items(), ViewRequest::from_input(input));
        let view = view_policy.build_view(path, 0, asked, lowerer, memo)?;
        let mut hidden = view.hidden;
        hidden.sort_by_key(|(index, _)| *index);
        Cancel::check_optional(input.cancel)?;
        let mut repaired = repair_entries(view.entries, &repair_rules(lowerer));
        repaired.dropped.sort_unstable();
        Cancel::check_optional(input.cancel)?;
        let bound = |(_, why): &&(usize, OmitReason)| *why == OmitReason::BoundThinking;
        let bound = || hidden.iter().filter(bound).map(|(index, _)| *index);
        let mut front = Self {
            history: History::default(),
            view_policy: view_policy.clone(),
            settled: 0,
            scanned: 0,
            compactions: active_compactions(path, view_policy, &hidden, lowerer, memo),
            left_out_thinking: bound()
                .filter_map(|at| path.get(at))
                .map(|one| ViewEntry::new(Arc::clone(&one.item), one.hash, 0))
                .map(|entry| lowerer.count_item(&entry, memo))
                .sum(),
            bound_thinking: bound()
                .min()
                .zip(bound().max())
                .map(|span| (bound().count(), span)),
            hidden: GrowingList::default(),
            rules: FoundRules::default(),
            repaired_until: repaired_until(&repaired.dropped, &repaired.repairs),
            dropped: Arc::new(repaired.dropped),
            repairs: Arc::new(repaired.repairs),
            rewritten: GrowingList::default(),
            rewritten_entries: Vec::new(),
            rewritten_totals: RangeSums::default(),
            losses: GrowingList::default(),
            sound: true,
            refuses_thinking: repaired.refuses_thinking,
            items_read: path.len(),
            lowering_key: lowerer.lowering_key(),
            repair_rules: lowerer.repair_rules(),
            path: path.iter().map(ItemIdentity::of).collect(),
            beginning: input.path.known_beginning(),
            ids: IndexMap::new(),
        };
        front.hidden.extend(hidden);
        front.rules.replace_from(0, view.statements);
        front.append_entries(path, repaired.entries, lowerer, memo);
        Ok(front)
    }

    /// Whether it was made for the same target and of a beginning of this path.
    pub(crate) fn is_reusable_for(
        &self,
        lowerer: &Lowerer<'_>,
        view_policy: &ViewPolicy,
        path: PathItems<'_>,
    ) -> bool {
        self.lowering_key == lowerer.lowering_key()
            && self.repair_rules == lowerer.repair_rules()
            && self.view_policy == *view_policy
            && self.is_beginning_of(path)
    }

    /// Whether the path begins with the one it was made of.
    fn is_beginning_of(&self, path: PathItems<'_>) -> bool {
        if path.len() < self.path.len() {
            return false;
        }
        let compared = self.items_known_in(path);
        let own = self.path.get(compared..).unwrap_or_default();
        let given = path.items().get(compared..self.path.len());
        let given = given.unwrap_or_default().iter();
        given.map(ItemIdentity::of).eq(own.iter().copied())
    }

    /// How many of its first items stand at the beginning of a path too, as far as hashes tell; the others are compared one by one.
    fn items_known_in(&self, path: PathItems<'_>) -> usize {
        let known = self.beginning.as_ref();
        known.map_or(0, |known| match path.has_beginning(known) {
            true => known.items,
            false => 0,
        })
    }

    /// The same with what came after it on the path, if that can be told from the newest round on.
    pub(crate) fn extend_with_new_items(
        mut self,
        path: PathItems<'_>,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Option<Self> {
        self.items_read = self.path.len() - self.items_known_in(path);
        // The same path again, for instance after a refusal with another plan.
        if path.len() == self.path.len() {
            return Some(self);
        }
        let from = self.history.rounds.last()?.entries.start;
        // The newest round is made again: new items may join its last block, or answer its calls.
        let resume = self.newest_source()?;
        // Items that moved (a compaction shown elsewhere, outputs paired by repair) make path order
        // and round order differ; then nothing can be cut off cleanly and all is made anew.
        let settled = resume >= self.settled && self.view_policy.affects_nothing_after(resume);
        if from == 0 || !settled || !self.history.has_fixed_opening(from) {
            return None;
        }
        let (given, path) = (path, path.items());
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
        self.items_read += path.len() - resume;
        self.refuses_thinking = false;
        self.path
            .extend(path.iter().skip(self.path.len()).map(ItemIdentity::of));
        self.beginning = given.known_beginning();
        // What was said of the newest round is said anew by the passes above.
        let mut hidden = view.hidden;
        hidden.sort_by_key(|(index, _)| *index);
        self.hidden.clear_newest();
        self.hidden.extend(hidden);
        self.rules.replace_from(resume, view.statements);
        self.remove_repairs_from(resume);
        self.history.remove_last_round();
        let known = self
            .rewritten_entries
            .partition_point(|entry| *entry < from);
        self.rewritten.clear_newest();
        self.rewritten_entries.truncate(known);
        self.rewritten_totals.truncate(known);
        self.losses.clear_newest();
        self.append_entries(path, repaired.entries, lowerer, memo);
        Some(self)
    }

    /// The first index on the path of the newest round.
    fn newest_source(&self) -> Option<usize> {
        let newest = self.history.rounds.last()?.entries.clone();
        let newest = self.history.entries.get(newest.start..)?;
        newest.iter().filter_map(|entry| entry.source).min()
    }

    /// Forgets what repair did from an index on.
    fn remove_repairs_from(&mut self, index: usize) {
        // Reports share the lists, so they are copied only where something goes.
        if self.repaired_until > index {
            let (dropped, repairs) = (&mut self.dropped, &mut self.repairs);
            Arc::make_mut(dropped).retain(|one| *one < index);
            Arc::make_mut(repairs).retain(|repair| repair.index.is_none_or(|one| one < index));
            self.repaired_until = repaired_until(dropped, repairs);
        }
    }

    /// What is shown otherwise than it is in some rounds.
    pub(crate) fn rewritten_in(&self, rounds: &Range<usize>) -> Range<usize> {
        let entries = self.history.entries_of(rounds);
        let before = |entry: usize| self.rewritten_entries.partition_point(|own| *own < entry);
        before(entries.start)..before(entries.end)
    }

    /// The totals of that.
    pub(crate) fn rewritten_totals(&self, rounds: &Range<usize>) -> RewrittenTotals {
        self.rewritten_totals.sum(self.rewritten_in(rounds))
    }

    /// The last entry that is shown otherwise than it is.
    pub(crate) fn last_rewritten_entry(&self) -> Option<usize> {
        self.rewritten_entries.last().copied()
    }

    /// Whether an item of the path is in the payload, with that left out.
    pub(crate) fn shows(&self, index: usize, trimmed: &TrimmedItems) -> bool {
        let hidden = self.hidden.partition_point(|(own, _)| *own < index);
        let is_hidden = self
            .hidden
            .get(hidden)
            .is_some_and(|(own, _)| *own == index);
        index < self.path.len()
            && !is_hidden
            && !trimmed.contains(index)
            && self.dropped.binary_search(&index).is_err()
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
        self.rules.count_turns(path);
        for (at, entry) in (self.history.entries.len()..).zip(&entries) {
            if let Some(rewritten) = rewritten_entry(entry, path, lowerer, memo) {
                self.rewritten_entries.push(at);
                self.rewritten_totals.push(RewrittenTotals::of(&rewritten));
                self.rewritten.extend([rewritten]);
            }
            for id in entry_ids(entry) {
                self.ids.entry(id).or_insert(at);
            }
        }
        let from = self.history.blocks.len();
        self.history.append_entries(entries, lowerer, memo);
        // The ids of what extends a history are new to it.
        let new = self.history.blocks.get(from..).unwrap_or_default();
        self.sound = self.sound && is_sound(new);
        for (at, block) in (from..).zip(new) {
            let losses = block_losses(block, &self.history);
            self.losses.extend(losses.map(|loss| (at, loss)));
        }
        self.settle(path);
    }

    /// What stands before the newest round stays: each part of it is looked at once, when it is no longer the newest, so
    /// that extending a history costs what is new.
    fn settle(&mut self, path: &[PathItem]) {
        let (entry, block) = match self.history.rounds.last() {
            Some(newest) => (newest.entries.start, newest.blocks.start),
            None => (0, 0),
        };
        let before = self.history.entries.get(self.scanned..entry);
        let sources = before.unwrap_or_default().iter();
        let newest = sources.filter_map(|entry| entry.source).max();
        self.settled = self.settled.max(newest.map_or(0, |source| source + 1));
        self.scanned = entry;
        // The items from here on are looked at again when the path grows.
        if let Some(resume) = self.newest_source() {
            self.hidden.settle_while(|(index, _)| *index < resume);
            self.rules.settle_before(resume, path);
        }
        let settled = self.rewritten_entries.partition_point(|own| *own < entry);
        let open = self.rewritten_entries.len() - settled;
        self.rewritten.settle_all_but(open);
        self.losses.settle_while(|(own, _)| *own < block);
    }
}

/// Behind the last item that repair left out or changed.
fn repaired_until(dropped: &[usize], repairs: &[Repair]) -> usize {
    let repairs = repairs.iter().filter_map(|repair| repair.index);
    let last = repairs.chain(dropped.last().copied()).max();
    last.map_or(0, |last| last + 1)
}

/// What the target cannot say of a block of the history, with paths that mean something outside this crate.
pub(crate) fn block_losses<'b>(
    block: &'b LoweredBlock,
    history: &'b History,
) -> impl Iterator<Item = Loss> + 'b {
    // Most blocks lose nothing: the flag saves touching their chunks.
    let losses = match block.is_lossy {
        true => block.lowered.chunk.losses.as_slice(),
        false => &[],
    };
    losses.iter().map(|loss| {
        let (index, rest) = split_loss_path(&loss.path);
        let entry = history.entries.get(block.entries.start + index);
        let path = match entry.and_then(|entry| entry.source) {
            Some(source) => format!("items[{source}]{rest}"),
            None => format!("repaired{rest}"),
        };
        Loss {
            path,
            ..loss.clone()
        }
    })
}

/// The index with which the path of a loss begins, and the rest of the path.
pub(crate) fn split_loss_path(path: &str) -> (usize, &str) {
    let cut = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match cut.map(|(index, rest)| (index.parse(), rest)) {
        Some((Ok(index), rest)) => (index, rest),
        _ => (0, path),
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
        // Whether it may be told is known once the request's tools are: see `CompileOutcome::rewritten_items`.
        link: Some(Link::new(before.hash).to_string()),
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

/// The ids by which repair compares an entry with others, marked by their kind.
fn entry_ids(entry: &ViewEntry) -> impl Iterator<Item = String> {
    let call = call_id(&entry.item).map(|id| format!("call {id}"));
    let written = entry.call_id.as_ref().map(|id| format!("call {id}"));
    let own = entry.item.id().map(|id| format!("item {id}"));
    call.into_iter().chain(written).chain(own)
}
