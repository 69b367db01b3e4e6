//! What the passes decided, and what follows from it: what was left out, what was lost, what to do.

use std::ops::Range;

use contexture_tokens::TokenBounds;
use contexture_wire::{Envelope, Loss};

use crate::blocks::LoweredBlock;
use crate::contributions::{PayloadSlot, PlacedContribution, RequestOverhead};
use crate::history::{PreparedHistory, RequiredMessage, TrimPoint};
use crate::input::{CompactAdvice, CompileInput, Content};
use crate::standing_rules::RuleChoice;
use contexture_report::{OmitReason, Omitted, Rewritten};

/// What the passes decided.
pub(crate) struct CompileOutcome<'a> {
    pub(crate) input: &'a CompileInput<'a>,
    pub(crate) limit: u64,
    pub(crate) prepared: &'a PreparedHistory,
    pub(crate) slots: &'a [PayloadSlot<'a>],
    pub(crate) placed: &'a [PlacedContribution],
    /// What each contribution would take whole.
    pub(crate) natural: &'a [u64],
    pub(crate) trim_point: &'a TrimPoint,
    /// What is sent of the history.
    pub(crate) sent_blocks: &'a [&'a LoweredBlock],
    /// The path indexes that the cut left out, ascending.
    pub(crate) trimmed: Vec<usize>,
    pub(crate) overhead: &'a RequestOverhead,
    pub(crate) envelope: &'a Envelope,
    /// What repair changed in the tools.
    pub(crate) tool_losses: &'a [Loss],
    pub(crate) rule_choice: &'a RuleChoice,
    /// What was counted of all that is sent, where that was narrowed.
    pub(crate) counted: Option<TokenBounds>,
    /// The most that all that is sent can have, where less is budgeted.
    pub(crate) upper: Option<u64>,
}

impl CompileOutcome<'_> {
    /// The texts that must stand in the payload unchanged.
    pub(crate) fn pinned_texts(&self) -> Vec<String> {
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

    /// Returns the span of the history that was trimmed, which compaction would replace; `None` if nothing was trimmed.
    pub(crate) fn compact_advice(&self) -> Option<CompactAdvice> {
        Some(CompactAdvice {
            first: *self.trimmed.first()?,
            last: *self.trimmed.last()?,
            tokens: self.trimmed_tokens().high,
        })
    }

    /// The round behind the last one with something rewritten.
    pub(crate) fn treated_until(&self) -> usize {
        // Rewritten entries are in the order of the view, so the last one ends the changed stretch.
        let last = self.prepared.rewritten.last().map(|(entry, _)| *entry);
        let rounds = &self.prepared.history.rounds;
        last.map_or(0, |last| {
            rounds.partition_point(|round| round.entries.start <= last)
        })
    }

    /// What was rewritten in some rounds, in the order of the view.
    pub(crate) fn rewritten_in_rounds(&self, rounds: &Range<usize>) -> Vec<&Rewritten> {
        let entries = self.prepared.history.entries_of(rounds);
        let all = self.prepared.rewritten.iter();
        all.filter(|(entry, _)| entries.contains(entry))
            .map(|(_, rewritten)| rewritten)
            .collect()
    }

    /// What trimming left out, in tokens.
    pub(crate) fn trimmed_tokens(&self) -> TokenBounds {
        let history = &self.prepared.history;
        let pieces = history
            .blocks
            .get(history.blocks_of(&(0..self.trim_point.round)));
        let all: TokenBounds = pieces
            .unwrap_or_default()
            .iter()
            .map(|piece| piece.text)
            .sum();
        all - self
            .trim_point
            .kept
            .iter()
            .map(RequiredMessage::text_tokens)
            .sum()
    }

    /// Everything of the path that is not in the payload, as spans.
    pub(crate) fn omitted_spans(&self) -> Vec<Omitted> {
        let trimmed = self.trimmed.iter().map(|at| (*at, OmitReason::Trimmed));
        let dropped = self
            .prepared
            .dropped
            .iter()
            .map(|at| (*at, OmitReason::Repaired));
        let mut all: Vec<(usize, OmitReason)> = trimmed
            .chain(dropped)
            .chain(self.prepared.hidden.iter().copied())
            .collect();
        all.sort_unstable_by_key(|(at, _)| *at);
        merge_neighbours(all)
    }

    /// All losses, with paths that mean something outside this crate.
    pub(crate) fn all_losses(&self) -> Vec<Loss> {
        let mut out = [self.tool_losses, &self.envelope.losses].concat();
        for (slot, placed) in self.slots.iter().zip(self.placed) {
            for piece in &placed.blocks {
                out.extend(piece.lowered.chunk.losses.iter().map(|loss| {
                    // The format's writer knows only its block; the index is moved to the path of the
                    // conversation or to the contribution.
                    let (index, rest) = split_index(&loss.path);
                    let source = &slot.contribution.source;
                    let at = piece.entries.start + index;
                    with_path(loss, format!("contributions[{source}][{at}]{rest}"))
                }));
            }
        }
        let history = &self.prepared.history;
        // Most blocks lose nothing: the flag saves touching their chunks.
        for piece in self.sent_blocks.iter().filter(|piece| piece.is_lossy) {
            out.extend(piece.lowered.chunk.losses.iter().map(|loss| {
                let (index, rest) = split_index(&loss.path);
                let entry = history.entries.get(piece.entries.start + index);
                match entry.and_then(|entry| entry.source) {
                    Some(source) => with_path(loss, format!("items[{source}]{rest}")),
                    None => with_path(loss, format!("repaired{rest}")),
                }
            }));
        }
        out
    }
}

/// Omitted items in ascending order as spans of one reason each.
fn merge_neighbours(all: Vec<(usize, OmitReason)>) -> Vec<Omitted> {
    let mut spans: Vec<Omitted> = Vec::new();
    for (at, why) in all {
        match spans.last_mut() {
            // Neighbours with one reason become one span: a trimmed history of thousands of items
            // is one line.
            Some(span) if span.reason == why && span.last + 1 == at => {
                span.last = at;
                span.items += 1;
            }
            _ => spans.push(Omitted {
                first: at,
                last: at,
                items: 1,
                reason: why,
            }),
        }
    }
    spans
}

fn split_index(path: &str) -> (usize, &str) {
    let cut = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match cut.map(|(index, rest)| (index.parse(), rest)) {
        Some((Ok(index), rest)) => (index, rest),
        _ => (0, path),
    }
}

fn with_path(loss: &Loss, path: String) -> Loss {
    Loss {
        path,
        ..loss.clone()
    }
}
