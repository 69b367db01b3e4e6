//! The history as blocks and rounds, weighed, with what must not be cut from it.

use std::ops::Range;

use contexture_ir::{ContentHash, Item, Role};
use contexture_prompt_cache::SegmentStability;
use contexture_tokens::TokenBounds;
use contexture_wire::Format;

use crate::blocks::{
    BlockKind, Element, LoweredBlock, Lowerer, Memo, SharedElements, ShownAs, ViewEntry,
    group_into_rounds,
};
use crate::budget::RoundWeight;
use crate::growing::{RangeSums, Totals};
use crate::input::PathItem;

/// The history, whole.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The items, repaired; sources are indexes on the path.
    pub(crate) entries: Vec<ViewEntry>,
    pub(crate) blocks: Vec<LoweredBlock>,
    block_totals: RangeSums<BlockTotals>,
    /// What the pieces before the newest round are in a payload.
    pub(crate) frozen: SharedElements,
    /// For each of those pieces, and the one behind them, how many elements stand before it.
    frozen_indexes: Vec<usize>,
    pub(crate) rounds: Vec<Round>,
    pub(crate) round_weights: RangeSums<RoundWeight>,
    round_totals: RangeSums<RoundTotals>,
    /// The first round that is required, with all after it.
    pub(crate) last: usize,
    /// What the history opens with, where that is neither the model's nor a person's: a compaction,
    /// a word of the host's, a placeholder.
    pub(crate) opening: Option<RequiredMessage>,
    /// The first user message.
    pub(crate) task: Option<RequiredMessage>,
    /// The newest user message.
    pub(crate) question: Option<RequiredMessage>,
    /// Rounds with a pinned item.
    pub(crate) pinned: Vec<RequiredMessage>,
    /// Compactions that stand for what is left out.
    pub(crate) compactions: Vec<RequiredMessage>,
}

/// Sums over blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockTotals {
    /// What the model reads.
    pub(crate) text: TokenBounds,
    /// What the format adds.
    pub(crate) framing: TokenBounds,
    /// Both, as they were counted before they were narrowed.
    pub(crate) counted: TokenBounds,
    /// The most that both can be.
    pub(crate) upper: u64,
    /// Calls that are made.
    pub(crate) calls: usize,
    /// Blocks that have a file which only the provider sees.
    pub(crate) unseen: u64,
    /// Blocks of which the target cannot say all.
    pub(crate) lossy: usize,
}

impl BlockTotals {
    fn of(block: &LoweredBlock) -> Self {
        Self {
            text: block.text,
            framing: block.framing,
            counted: block.counted,
            upper: block.upper,
            calls: block.calls,
            unseen: block.is_unseen.into(),
            lossy: block.is_lossy.into(),
        }
    }

    /// The totals of some blocks.
    pub(crate) fn of_blocks<'b>(blocks: impl IntoIterator<Item = &'b LoweredBlock>) -> Self {
        let mut sum = Self::default();
        blocks
            .into_iter()
            .for_each(|block| sum.add(&Self::of(block)));
        sum
    }
}

impl Totals for BlockTotals {
    fn add(&mut self, other: &Self) {
        self.text += other.text;
        self.framing += other.framing;
        self.counted += other.counted;
        self.upper = self.upper.saturating_add(other.upper);
        self.calls += other.calls;
        self.unseen += other.unseen;
        self.lossy += other.lossy;
    }
}

/// Sums over rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTotals {
    /// Items of the path.
    pub(crate) items: usize,
    /// The first and the last index on the path.
    pub(crate) span: Option<(usize, usize)>,
    /// Messages of people.
    persons: usize,
}

impl RoundTotals {
    fn of(entries: &[ViewEntry]) -> Self {
        let sources = || entries.iter().filter_map(|entry| entry.source);
        Self {
            items: sources().count(),
            span: sources().min().zip(sources().max()),
            persons: entries
                .iter()
                .filter(|entry| is_user_message(entry))
                .count(),
        }
    }
}

impl Totals for RoundTotals {
    fn add(&mut self, other: &Self) {
        self.items += other.items;
        self.span = match (self.span, other.span) {
            (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
            (own, other) => own.or(other),
        };
        self.persons += other.persons;
    }
}

/// A round: a message of the user and what answers it.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) blocks: Range<usize>,
    pub(crate) entries: Range<usize>,
}

/// What is sent when its round is cut: a message alone, or a pinned round whole.
#[derive(Clone, Debug)]
pub(crate) struct RequiredMessage {
    pub(crate) round: usize,
    /// Its first entry.
    pub(crate) entry: usize,
    /// The path indexes of its items; what repair made up has none.
    pub(crate) sources: Vec<usize>,
    pub(crate) blocks: Vec<LoweredBlock>,
}

impl RequiredMessage {
    /// What it takes of the budget.
    pub(crate) fn weight(&self) -> u64 {
        self.blocks.iter().map(LoweredBlock::weight).sum()
    }

    /// What the model reads.
    pub(crate) fn text_tokens(&self) -> TokenBounds {
        self.blocks.iter().map(|piece| piece.text).sum()
    }

    /// What the format adds.
    pub(crate) fn framing_tokens(&self) -> TokenBounds {
        self.blocks.iter().map(|piece| piece.framing).sum()
    }

    /// Whether the first who says something in it is on the user's side.
    pub(crate) fn begins_with_user(&self) -> bool {
        let mut spoken = self.blocks.iter().filter(|piece| piece.element_count() > 0);
        spoken
            .next()
            .is_some_and(|piece| piece.class == BlockKind::User)
    }
}

impl History {
    /// Whether what is said last is on the user's side.
    pub(crate) fn ends_with_user(&self) -> bool {
        let mut newest_first = self.blocks.iter().rev();
        newest_first
            .find(|block| block.element_count() > 0)
            .is_some_and(|block| block.class != BlockKind::Model)
    }

    /// Lowers and weighs entries behind those that are there; the first of them opens a round.
    pub(crate) fn append_entries(
        &mut self,
        entries: Vec<ViewEntry>,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) {
        let (first_entry, first_piece) = (self.entries.len(), self.blocks.len());
        let mut pieces = lowerer.lower_items(&entries, self.ends_with_user(), memo);
        // Blocks count entries from the beginning of what was lowered; the history counts from its own.
        for piece in &mut pieces {
            piece.entries.start += first_entry;
            piece.entries.end += first_entry;
        }
        self.entries.extend(entries);
        for range in group_into_rounds(pieces.iter().map(|piece| piece.class)) {
            let own = pieces.get(range.clone()).unwrap_or_default();
            let round = Round {
                entries: own.first().map_or(0, |piece| piece.entries.start)
                    ..own.last().map_or(0, |piece| piece.entries.end),
                blocks: range.start + first_piece..range.end + first_piece,
            };
            let weight = own.iter().map(LoweredBlock::weight);
            let weight = weight.fold(0, u64::saturating_add);
            self.round_weights.push(RoundWeight(weight));
            let entries = self.entries.get(round.entries.clone());
            self.round_totals
                .push(RoundTotals::of(entries.unwrap_or_default()));
            self.rounds.push(round);
        }
        for piece in &pieces {
            self.block_totals.push(BlockTotals::of(piece));
        }
        self.blocks.extend(pieces);
        self.last = self.rounds.len().saturating_sub(1);
        self.freeze_rope(lowerer.dialect().format);
        // Last, as it reads entries, rounds and blocks.
        self.find_required_messages(first_entry, lowerer, memo);
    }

    /// Makes elements of the pieces before the newest round. They never change: only the newest round
    /// is ever taken out.
    fn freeze_rope(&mut self, format: Format) {
        let end = self.rounds.last().map_or(0, |round| round.blocks.start);
        for piece in self
            .blocks
            .get(self.frozen_indexes.len()..end)
            .unwrap_or_default()
        {
            // Pushed for every block, also for those that lower to nothing: the index of a block stays
            // its place in this list.
            self.frozen_indexes.push(self.frozen.len());
            let element = Element::from_block(piece, format, SegmentStability::Onwards);
            if let Some(mut element) = element {
                if let Some(before) = self.frozen.last() {
                    element.continue_message(before, format);
                }
                self.frozen.push(element);
            }
        }
    }

    /// How many elements the pieces before one are, if that one is before the newest round.
    pub(crate) fn frozen_element_index(&self, piece: usize) -> Option<usize> {
        self.frozen_indexes.get(piece).copied()
    }

    /// Takes the newest round out.
    pub(crate) fn remove_last_round(&mut self) {
        if let Some(round) = self.rounds.pop() {
            self.blocks.truncate(round.blocks.start);
            self.block_totals.truncate(round.blocks.start);
            self.round_weights.truncate(self.rounds.len());
            self.round_totals.truncate(self.rounds.len());
            self.entries.truncate(round.entries.start);
        }
    }

    /// Finds what is kept when its round is cut. What was found before is still there, the newest
    /// round apart.
    fn find_required_messages(&mut self, from: usize, lowerer: &Lowerer<'_>, memo: &mut Memo) {
        let count = self.entries.len();
        // Only what stood in the newest round can be outdated: searching the whole history in every
        // call would make long conversations quadratic.
        if self.opening.as_ref().is_none_or(|kept| kept.entry >= from) {
            self.opening = self.find_opening(lowerer, memo);
        }
        // What was searched before has none if none was found.
        if self.task.as_ref().is_none_or(|kept| kept.entry >= from) {
            self.task =
                (from..count).find_map(|entry| self.required_user_message(entry, lowerer, memo));
        }
        // Among the new entries first, as the newest message wins. If none of them is a user message,
        // the one found before still holds.
        let mut newest_first = (from..count).rev();
        let newest =
            newest_first.find_map(|entry| self.required_user_message(entry, lowerer, memo));
        let before = std::mem::replace(&mut self.question, newest);
        if self.question.is_none() {
            self.question = match before {
                Some(kept) if kept.entry < from => Some(kept),
                // It stood in the newest round, and is not there any more.
                Some(_) => (0..from)
                    .rev()
                    .find_map(|entry| self.required_user_message(entry, lowerer, memo)),
                None => None,
            };
        }
        // The newest round is rebuilt with each extension, so what was found in it is found again.
        self.compactions.retain(|kept| kept.entry < from);
        for entry in from..count {
            if self
                .entries
                .get(entry)
                .is_some_and(|own| own.shown_as == ShownAs::Compaction)
            {
                self.compactions
                    .extend(self.lower_single(entry, lowerer, memo));
            }
        }
        self.pinned.retain(|kept| kept.entry < from);
        let first = self
            .rounds
            .partition_point(|round| round.entries.end <= from);
        for (at, round) in self.rounds.iter().enumerate().skip(first) {
            let own = self.entries.get(round.entries.clone()).unwrap_or_default();
            if own.iter().any(|entry| entry.pinned) {
                self.pinned.push(RequiredMessage {
                    round: at,
                    entry: round.entries.start,
                    sources: own.iter().filter_map(|entry| entry.source).collect(),
                    blocks: self
                        .blocks
                        .get(round.blocks.clone())
                        .unwrap_or_default()
                        .to_vec(),
                });
            }
        }
    }

    fn find_opening(&self, lowerer: &Lowerer<'_>, memo: &mut Memo) -> Option<RequiredMessage> {
        let mut singles =
            (0..self.entries.len()).filter_map(|entry| self.lower_single(entry, lowerer, memo));
        let first = singles.find(has_elements)?;
        let persons = self.entries.get(first.entry).is_some_and(is_user_message);
        let user = first.blocks.first().map(|piece| piece.class) == Some(BlockKind::User);
        // A user message as opening is the task, which is kept under its own name; the model cannot
        // open a request.
        (user && !persons).then_some(first)
    }

    /// A person's message that says something to this target.
    fn required_user_message(
        &self,
        entry: usize,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Option<RequiredMessage> {
        self.entries.get(entry).filter(|own| is_user_message(own))?;
        self.lower_single(entry, lowerer, memo).filter(has_elements)
    }

    /// Whose words are first and last, leaving out what the target cannot say.
    pub(crate) fn first_and_last_kind(&self) -> (Option<BlockKind>, Option<BlockKind>) {
        let mut spoken = self.blocks.iter().filter(|piece| piece.element_count() > 0);
        let first = spoken.next().map(|piece| piece.class);
        (first, spoken.next_back().map(|piece| piece.class).or(first))
    }

    /// Whether what stands before an entry decides how the history begins: words that were made up
    /// because nobody had said anything may not be needed once somebody does.
    pub(crate) fn has_fixed_opening(&self, entry: usize) -> bool {
        let made_up = self
            .entries
            .first()
            .is_none_or(|first| first.source.is_none());
        !made_up
            || self.blocks.iter().any(|piece| {
                let own = self.entries.get(piece.entries.clone()).unwrap_or_default();
                let real = own.iter().any(|entry| entry.source.is_some());
                piece.entries.end <= entry && piece.element_count() > 0 && real
            })
    }

    /// One entry as a piece of its own.
    pub(crate) fn lower_single(
        &self,
        entry: usize,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Option<RequiredMessage> {
        let own = self.entries.get(entry..=entry)?;
        let round = self
            .rounds
            .partition_point(|round| round.entries.end <= entry);
        Some(RequiredMessage {
            round,
            entry,
            sources: own.first()?.source.into_iter().collect(),
            blocks: lowerer.lower_items(own, false, memo),
        })
    }

    /// The entry with which the newest `turns` turns begin; `None` if there are not more.
    pub(crate) fn turn_entry(&self, turns: u32) -> Option<usize> {
        let persons = |(_, entry): &(usize, &ViewEntry)| is_user_message(entry);
        let mut newest_first = self.entries.iter().enumerate().rev().filter(persons);
        let skip = turns.checked_sub(1)?;
        newest_first.nth(skip as usize).map(|(at, _)| at)
    }

    /// Whether nothing of the last round says something to this target.
    pub(crate) fn is_last_round_empty(&self) -> bool {
        let last = self.rounds.get(self.last).map(|round| round.blocks.clone());
        let pieces = last.and_then(|pieces| self.blocks.get(pieces.start..));
        pieces.is_some_and(|pieces| pieces.iter().all(|piece| piece.element_count() == 0))
    }

    /// How many turns some rounds begin.
    pub(crate) fn turn_count_from(&self, round: usize) -> usize {
        let rounds = round..self.rounds.len();
        self.round_totals.sum(rounds).persons
    }

    /// The entry of a path index, if it is a user's message.
    pub(crate) fn user_message_entry(&self, source: usize) -> Option<usize> {
        let entry = self.find_entry(source)?;
        self.entries.get(entry).filter(|own| is_user_message(own))?;
        Some(entry)
    }

    /// The entry of a path index.
    fn find_entry(&self, source: usize) -> Option<usize> {
        let is_own = |entry: &ViewEntry| entry.source == Some(source);
        // Entries are in path order, but for what a repair or a compaction has moved.
        let guess = self
            .entries
            .partition_point(|entry| entry.source.is_none_or(|own| own < source));
        match self.entries.get(guess).is_some_and(is_own) {
            true => Some(guess),
            false => self.entries.iter().position(is_own),
        }
    }

    /// What is kept when its round is cut, each once, in order.
    pub(crate) fn required_messages(&self) -> Vec<&RequiredMessage> {
        let words = self.opening.iter().chain(&self.task).chain(&self.question);
        // A pinned round contains its messages: they are not sent twice.
        let singles = words.chain(&self.compactions);
        let pinned = |round: usize| self.pinned.iter().any(|kept| kept.round == round);
        let mut all: Vec<&RequiredMessage> = singles.filter(|kept| !pinned(kept.round)).collect();
        all.extend(&self.pinned);
        all.sort_by_key(|kept| kept.entry);
        all.dedup_by_key(|kept| kept.entry);
        all
    }

    /// Which of them it is.
    pub(crate) fn required_role(&self, kept: &RequiredMessage) -> &'static str {
        let is = |other: &Option<RequiredMessage>| {
            other.as_ref().map(|other| other.entry) == Some(kept.entry)
        };
        match () {
            () if self.pinned.iter().any(|pinned| pinned.round == kept.round) => "pinned",
            () if is(&self.opening) => "opening",
            () if is(&self.task) => "task",
            () if self.compactions.iter().any(|own| own.entry == kept.entry) => "compaction",
            () => "question",
        }
    }

    /// The first path index of a round.
    pub(crate) fn first_source(&self, round: usize) -> Option<usize> {
        let entries = self.rounds.get(round)?.entries.clone();
        let own = self.entries.get(entries)?;
        own.iter().find_map(|entry| entry.source)
    }

    /// The round that begins with a path index, if one does.
    pub(crate) fn round_starting_with(
        &self,
        source: usize,
        hash: ContentHash,
        path: &[PathItem],
    ) -> Option<usize> {
        // A frontier of another path or an edited one is noticed by the hash of its item.
        if path.get(source).map(|item| item.hash) != Some(hash) {
            return None;
        }
        let entry = self.find_entry(source)?;
        let round = self
            .rounds
            .partition_point(|round| round.entries.end <= entry);
        (self.first_source(round) == Some(source)).then_some(round)
    }

    /// The pieces of some rounds.
    pub(crate) fn blocks_of(&self, rounds: &Range<usize>) -> Range<usize> {
        let own = self.rounds.get(rounds.clone()).unwrap_or_default();
        own.first().map_or(0, |round| round.blocks.start)
            ..own.last().map_or(0, |round| round.blocks.end)
    }

    /// The entries of some rounds.
    pub(crate) fn entries_of(&self, rounds: &Range<usize>) -> Range<usize> {
        let own = self.rounds.get(rounds.clone()).unwrap_or_default();
        own.first().map_or(0, |round| round.entries.start)
            ..own.last().map_or(0, |round| round.entries.end)
    }

    /// The path indexes of some rounds' items.
    pub(crate) fn source_indexes(&self, rounds: &Range<usize>) -> impl Iterator<Item = usize> {
        let entries = self.entries.get(self.entries_of(rounds));
        let entries = entries.unwrap_or_default().iter();
        entries.filter_map(|entry| entry.source)
    }

    /// The totals of some rounds.
    pub(crate) fn round_totals(&self, rounds: Range<usize>) -> RoundTotals {
        self.round_totals.sum(rounds)
    }

    /// The totals of the pieces of some rounds.
    pub(crate) fn block_totals_of(&self, rounds: &Range<usize>) -> BlockTotals {
        self.block_totals.sum(self.blocks_of(rounds))
    }

    /// The totals of some pieces.
    pub(crate) fn block_totals(&self, pieces: Range<usize>) -> BlockTotals {
        self.block_totals.sum(pieces)
    }
}

fn has_elements(kept: &RequiredMessage) -> bool {
    kept.blocks.iter().any(|piece| piece.element_count() > 0)
}

fn is_user_message(entry: &ViewEntry) -> bool {
    entry.source.is_some()
        && matches!(&*entry.item, Item::Message(message) if message.role == Role::User)
}
