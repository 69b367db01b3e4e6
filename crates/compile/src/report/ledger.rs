//! What the passes decided, and what follows from it: what was left out, what was lost, what to do.

use std::ops::Range;

use contexture_wire::{Envelope, Loss};

use crate::contribution::Content;
use crate::count::Tokens;
use crate::cut::Cut;
use crate::frame::Frame;
use crate::front::Front;
use crate::history::Kept;
use crate::passes::lower::Piece;
use crate::passes::place::{Placed, Slot};
use crate::plan::CompactAdvice;
use crate::report::document::{OmitReason, Omitted, Rewritten};
use crate::request::CompileInput;

/// What the passes decided.
pub(crate) struct Ledger<'a> {
    pub(crate) input: &'a CompileInput<'a>,
    pub(crate) limit: u64,
    pub(crate) front: &'a Front,
    pub(crate) slots: &'a [Slot<'a>],
    pub(crate) placed: &'a [Placed],
    /// What each contribution would take whole.
    pub(crate) natural: &'a [u64],
    pub(crate) cut: &'a Cut,
    /// What is sent of the history.
    pub(crate) sent: &'a [&'a Piece],
    /// The path indexes that the cut left out, ascending.
    pub(crate) trimmed: Vec<usize>,
    pub(crate) frame: &'a Frame,
    pub(crate) envelope: &'a Envelope,
    /// What was counted of all that is sent, where that was narrowed.
    pub(crate) counted: Option<Tokens>,
}

impl Ledger<'_> {
    /// The texts that must stand in the payload unchanged.
    pub(crate) fn pinned(&self) -> Vec<String> {
        let pinned = self.slots.iter().filter(|slot| slot.contribution.pinned);
        pinned
            .flat_map(|slot| match &slot.contribution.content {
                Content::Text(text) => vec![text.clone()],
                Content::Texts(texts) => texts.clone(),
                Content::Fragments {
                    fragments,
                    renderer,
                } => renderer.render(fragments).into_iter().collect(),
                Content::Instructions(_) | Content::Items(_) => Vec::new(),
            })
            // White space alone is not said to every provider.
            .filter(|text| !text.trim().is_empty())
            .collect()
    }

    /// What of the history could be compacted: it was trimmed.
    pub(crate) fn compact_advice(&self) -> Option<CompactAdvice> {
        Some(CompactAdvice {
            first: *self.trimmed.first()?,
            last: *self.trimmed.last()?,
            tokens: self.trimmed_tokens().high,
        })
    }

    /// The round behind the last one with something rewritten.
    pub(crate) fn treated_until(&self) -> usize {
        let last = self.front.rewritten.last().map(|(entry, _)| *entry);
        let rounds = &self.front.history.rounds;
        last.map_or(0, |last| {
            rounds.partition_point(|round| round.entries.start <= last)
        })
    }

    /// What was rewritten in some rounds, in the order of the view.
    pub(crate) fn rewritten(&self, rounds: &Range<usize>) -> Vec<&Rewritten> {
        let entries = self.front.history.entries_of(rounds);
        let all = self.front.rewritten.iter();
        all.filter(|(entry, _)| entries.contains(entry))
            .map(|(_, rewritten)| rewritten)
            .collect()
    }

    /// What trimming left out, in tokens.
    pub(crate) fn trimmed_tokens(&self) -> Tokens {
        let history = &self.front.history;
        let pieces = history.pieces.get(history.pieces_of(&(0..self.cut.round)));
        let all: Tokens = pieces
            .unwrap_or_default()
            .iter()
            .map(|piece| piece.text)
            .sum();
        all - self.cut.kept.iter().map(Kept::text).sum()
    }

    /// Everything of the path that is not in the payload, as spans.
    pub(crate) fn omitted(&self) -> Vec<Omitted> {
        let trimmed = self.trimmed.iter().map(|at| (*at, OmitReason::Trimmed));
        let dropped = self
            .front
            .dropped
            .iter()
            .map(|at| (*at, OmitReason::Repaired));
        let mut all: Vec<(usize, OmitReason)> = trimmed
            .chain(dropped)
            .chain(self.front.hidden.iter().copied())
            .collect();
        all.sort_unstable_by_key(|(at, _)| *at);
        let mut spans: Vec<Omitted> = Vec::new();
        for (at, why) in all {
            match spans.last_mut() {
                Some(span) if span.why == why && span.last + 1 == at => {
                    span.last = at;
                    span.items += 1;
                }
                _ => spans.push(Omitted {
                    first: at,
                    last: at,
                    items: 1,
                    why,
                }),
            }
        }
        spans
    }

    /// All losses, with paths that mean something outside this crate.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        let mut out = self.envelope.losses.clone();
        for (slot, placed) in self.slots.iter().zip(self.placed) {
            for piece in &placed.pieces {
                out.extend(piece.lowered.chunk.losses.iter().map(|loss| {
                    let (index, rest) = split(&loss.path);
                    let source = &slot.contribution.source;
                    let at = piece.entries.start + index;
                    rename(loss, format!("contributions[{source}][{at}]{rest}"))
                }));
            }
        }
        let history = &self.front.history;
        for piece in self.sent.iter().filter(|piece| piece.is_lossy) {
            out.extend(piece.lowered.chunk.losses.iter().map(|loss| {
                let (index, rest) = split(&loss.path);
                let entry = history.entries.get(piece.entries.start + index);
                match entry.and_then(|entry| entry.source) {
                    Some(source) => rename(loss, format!("items[{source}]{rest}")),
                    None => rename(loss, format!("repaired{rest}")),
                }
            }));
        }
        out
    }
}

fn split(path: &str) -> (usize, &str) {
    let cut = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match cut.map(|(index, rest)| (index.parse(), rest)) {
        Some((Ok(index), rest)) => (index, rest),
        _ => (0, path),
    }
}

fn rename(loss: &Loss, path: String) -> Loss {
    Loss {
        path,
        ..loss.clone()
    }
}
