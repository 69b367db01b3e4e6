//! The history as blocks and rounds, weighed, with what must not be cut from it.

use std::ops::Range;

use contexture_ir::{ContentHash, Item, Role};

use crate::block::{Class, rounds};
use crate::entry::Entry;
use crate::memo::Memo;
use crate::passes::lower::{Piece, Press};
use crate::request::PathItem;

/// The history, whole.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The items, repaired; sources are indexes on the path.
    pub(crate) entries: Vec<Entry>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) rounds: Vec<Round>,
    /// The first round that is required, with all after it.
    pub(crate) last: usize,
    /// What the history opens with, where that is neither the model's nor a person's: a compaction,
    /// a word of the host's, a placeholder.
    pub(crate) opening: Option<Single>,
    /// The first user message.
    pub(crate) task: Option<Single>,
    /// The newest user message.
    pub(crate) question: Option<Single>,
}

/// One round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) pieces: Range<usize>,
    pub(crate) entries: Range<usize>,
    pub(crate) weight: u64,
}

/// A message that may be sent without its round.
#[derive(Clone, Debug)]
pub(crate) struct Single {
    pub(crate) round: usize,
    pub(crate) entry: usize,
    /// Its index on the path, unless repair made it up.
    pub(crate) source: Option<usize>,
    /// The message alone.
    pub(crate) piece: Piece,
}

impl History {
    /// Lowers and weighs entries behind those that are there; the first of them opens a round.
    pub(crate) fn append(&mut self, entries: Vec<Entry>, press: &Press<'_>, memo: &mut Memo) {
        let (first_entry, first_piece) = (self.entries.len(), self.pieces.len());
        let mut pieces = press.press(&entries, memo);
        for piece in &mut pieces {
            piece.entries.start += first_entry;
            piece.entries.end += first_entry;
        }
        for range in rounds(pieces.iter().map(|piece| piece.class)) {
            let own = pieces.get(range.clone()).unwrap_or_default();
            self.rounds.push(Round {
                weight: own.iter().map(Piece::weight).sum(),
                entries: own.first().map_or(0, |piece| piece.entries.start)
                    ..own.last().map_or(0, |piece| piece.entries.end),
                pieces: range.start + first_piece..range.end + first_piece,
            });
        }
        self.entries.extend(entries);
        self.pieces.extend(pieces);
        self.last = self.rounds.len().saturating_sub(1);
        self.mark(press, memo);
    }

    /// Takes the newest round out.
    pub(crate) fn forget_last_round(&mut self) {
        if let Some(round) = self.rounds.pop() {
            self.pieces.truncate(round.pieces.start);
            self.entries.truncate(round.entries.start);
        }
    }

    /// Finds the messages that are kept when their rounds are cut.
    fn mark(&mut self, press: &Press<'_>, memo: &mut Memo) {
        self.opening = self.find_opening(press, memo);
        let count = self.entries.len();
        self.task = (0..count).find_map(|entry| self.words(entry, press, memo));
        let mut newest_first = (0..count).rev();
        self.question = newest_first.find_map(|entry| self.words(entry, press, memo));
    }

    fn find_opening(&self, press: &Press<'_>, memo: &mut Memo) -> Option<Single> {
        let mut singles =
            (0..self.entries.len()).filter_map(|entry| self.single(entry, press, memo));
        let first = singles.find(|single| single.piece.elements() > 0)?;
        let persons = self.entries.get(first.entry).is_some_and(is_persons);
        (first.piece.class == Class::User && !persons).then_some(first)
    }

    /// A person's message that says something to this target.
    fn words(&self, entry: usize, press: &Press<'_>, memo: &mut Memo) -> Option<Single> {
        self.entries.get(entry).filter(|own| is_persons(own))?;
        let single = self.single(entry, press, memo)?;
        (single.piece.elements() > 0).then_some(single)
    }

    /// Whose words are first and last, leaving out what the target cannot say.
    pub(crate) fn ends(&self) -> (Option<Class>, Option<Class>) {
        let mut spoken = self.pieces.iter().filter(|piece| piece.elements() > 0);
        let first = spoken.next().map(|piece| piece.class);
        (first, spoken.next_back().map(|piece| piece.class).or(first))
    }

    /// One entry as a piece of its own.
    pub(crate) fn single(
        &self,
        entry: usize,
        press: &Press<'_>,
        memo: &mut Memo,
    ) -> Option<Single> {
        let own = self.entries.get(entry..=entry)?;
        let round = self
            .rounds
            .partition_point(|round| round.entries.end <= entry);
        Some(Single {
            round,
            entry,
            source: own.first()?.source,
            piece: press.press(own, memo).into_iter().next()?,
        })
    }

    /// The entry of a path index, if it is a user's message.
    pub(crate) fn user_message(&self, source: usize) -> Option<usize> {
        let found = |entry: &Entry| entry.source == Some(source) && is_persons(entry);
        self.entries.iter().position(found)
    }

    /// The messages that are kept when their rounds are cut, each once.
    pub(crate) fn singles(&self) -> impl Iterator<Item = &Single> {
        let task = self.task.as_ref();
        let question = self.question.as_ref();
        let same = move |single: &&Single| task.map(|task| task.entry) != Some(single.entry);
        self.opening.iter().chain(task).chain(question.filter(same))
    }

    /// Which of the kept messages an entry is.
    pub(crate) fn role_of(&self, single: &Single) -> &'static str {
        let is =
            |other: &Option<Single>| other.as_ref().map(|other| other.entry) == Some(single.entry);
        match () {
            () if is(&self.opening) => "opening",
            () if is(&self.task) => "task",
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
    pub(crate) fn round_at(
        &self,
        source: usize,
        hash: ContentHash,
        path: &[PathItem],
    ) -> Option<usize> {
        if path.get(source).map(|item| item.hash) != Some(hash) {
            return None;
        }
        (0..self.rounds.len()).find(|round| self.first_source(*round) == Some(source))
    }

    /// The pieces of some rounds.
    pub(crate) fn pieces_of(&self, rounds: &Range<usize>) -> Range<usize> {
        let own = self.rounds.get(rounds.clone()).unwrap_or_default();
        own.first().map_or(0, |round| round.pieces.start)
            ..own.last().map_or(0, |round| round.pieces.end)
    }

    /// The path indexes of some rounds' items.
    pub(crate) fn sources(&self, rounds: &Range<usize>) -> impl Iterator<Item = usize> {
        let own = self.rounds.get(rounds.clone()).unwrap_or_default();
        let range = own.first().map_or(0, |round| round.entries.start)
            ..own.last().map_or(0, |round| round.entries.end);
        let entries = self.entries.get(range).unwrap_or_default();
        entries.iter().filter_map(|entry| entry.source)
    }

    /// How many calls some pieces make.
    pub(crate) fn calls(&self, pieces: Range<usize>) -> usize {
        let own = self.pieces.get(pieces).unwrap_or_default();
        let calls = |piece: &Piece| match piece.class {
            Class::Model => piece.lowered.chunk.facts.calls.len(),
            Class::User | Class::Outputs => 0,
        };
        own.iter().map(calls).sum()
    }
}

fn is_persons(entry: &Entry) -> bool {
    entry.source.is_some()
        && matches!(&*entry.item, Item::Message(message) if message.role == Role::User)
}
