//! What the passes decided, and what follows from it: what was left out, what was lost, what to do.

use std::sync::Arc;

use contexture_condense::has_read_tool;
use contexture_tokens::TokenBounds;
use contexture_wire::{Envelope, Loss};

use crate::contributions::{PayloadSlot, PlacedContribution, RequestOverhead};
use crate::history::{
    BlockTotals, PreparedHistory, RequiredMessage, SentBlocks, TrimPoint, TrimmedItems,
    block_losses, split_loss_path,
};
use crate::input::{CompactAdvice, CompileInput, Content};
use crate::standing_rules::RuleChoice;
use contexture_report::{DeferredList, OmitReason, Omitted, Repair, Rewritten};

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
    pub(crate) sent_blocks: SentBlocks<'a>,
    pub(crate) sent_totals: BlockTotals,
    /// What the cut left out.
    pub(crate) trimmed: TrimmedItems,
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
        let (first, last) = self.trimmed.ends()?;
        Some(CompactAdvice {
            first,
            last,
            tokens: self.trimmed_tokens().high,
        })
    }

    /// The round behind the last one with something rewritten.
    pub(crate) fn treated_until(&self) -> usize {
        // Rewritten entries are in the order of the view, so the last one ends the changed stretch.
        let last = self.prepared.last_rewritten_entry();
        let rounds = &self.prepared.history.rounds;
        last.map_or(0, |last| {
            rounds.partition_point(|round| round.entries.start <= last)
        })
    }

    /// What trimming left out, in tokens.
    pub(crate) fn trimmed_tokens(&self) -> TokenBounds {
        let history = &self.prepared.history;
        let all = history.block_totals_of(&(0..self.trim_point.round)).text;
        all - self
            .trim_point
            .kept
            .iter()
            .map(RequiredMessage::text_tokens)
            .sum()
    }

    /// How many items of the path are not in the payload.
    pub(crate) fn omitted_count(&self) -> usize {
        self.trimmed.count + self.prepared.dropped.len() + self.prepared.hidden.len()
    }

    /// Everything of the path that is not in the payload, as spans.
    pub(crate) fn omitted_spans(&self) -> DeferredList<Omitted> {
        let hidden = self.prepared.hidden.clone();
        let dropped = Arc::clone(&self.prepared.dropped);
        let trimmed = Arc::clone(&self.trimmed.spans);
        DeferredList::new(move || {
            let trimmed = trimmed.iter().map(|(first, last)| Omitted {
                first: *first,
                last: *last,
                items: last + 1 - first,
                reason: OmitReason::Trimmed,
            });
            let dropped = dropped.iter().map(|at| (*at, OmitReason::Repaired));
            let singles = dropped.chain(hidden.iter().copied());
            let singles = singles.map(|(at, reason)| Omitted {
                first: at,
                last: at,
                items: 1,
                reason,
            });
            let mut all: Vec<Omitted> = trimmed.chain(singles).collect();
            all.sort_by_key(|span| span.first);
            merge_neighbours(all)
        })
    }

    /// What is shown otherwise than it is, in path order: of the rounds that are sent, and of what is kept of the others.
    pub(crate) fn rewritten_items(&self) -> DeferredList<Rewritten> {
        let prepared = self.prepared;
        let sent = self.trim_point.round..prepared.history.rounds.len();
        let sent = prepared.rewritten_in(&sent);
        let kept = self.trim_point.kept.iter().flat_map(|kept| {
            let own = prepared.rewritten_in(&(kept.round..kept.round + 1));
            let own = own.filter_map(|at| prepared.rewritten.get(at));
            own.filter(|one| kept.sources.contains(&one.index))
        });
        let kept: Vec<Rewritten> = kept.cloned().collect();
        let all = prepared.rewritten.clone();
        let is_readable = has_read_tool(&self.input.request.tools);
        DeferredList::new(move || {
            let sent = all.iter_from(sent.start).take(sent.len());
            let mut list: Vec<Rewritten> = kept.iter().chain(sent).cloned().collect();
            list.sort_by_key(|one| one.index);
            if !is_readable {
                // A link that nobody can follow is none.
                list.iter_mut().for_each(|one| one.link = None);
            }
            list
        })
    }

    /// The repairs of the history, then those of the contributions.
    pub(crate) fn all_repairs(&self) -> DeferredList<Repair> {
        let own = Arc::clone(&self.prepared.repairs);
        let placed = self.placed.iter().flat_map(|placed| &placed.repairs);
        let placed: Vec<Repair> = placed.cloned().collect();
        DeferredList::new(move || own.iter().chain(&placed).cloned().collect())
    }

    /// All losses, with paths that mean something outside this crate.
    pub(crate) fn all_losses(&self) -> DeferredList<Loss> {
        let mut first = [self.tool_losses, &self.envelope.losses].concat();
        for (slot, placed) in self.slots.iter().zip(self.placed) {
            for piece in &placed.blocks {
                first.extend(piece.lowered.chunk.losses.iter().map(|loss| {
                    // The format's writer knows only its block; the index is moved to the path of the
                    // conversation or to the contribution.
                    let (index, rest) = split_loss_path(&loss.path);
                    let source = &slot.contribution.source;
                    let at = piece.entries.start + index;
                    Loss {
                        path: format!("contributions[{source}][{at}]{rest}"),
                        ..loss.clone()
                    }
                }));
            }
        }
        let history = &self.prepared.history;
        let kept = self.sent_blocks.kept();
        first.extend(kept.flat_map(|block| block_losses(block, history)));
        if self.sent_blocks.rest_totals().lossy == 0 {
            return first.into();
        }
        let from = self.sent_blocks.first();
        let all = self.prepared.losses.clone();
        DeferredList::new(move || {
            let sent = all.partition_point(|(block, _)| *block < from);
            let sent = all.iter_from(sent).map(|(_, loss)| loss);
            first.iter().chain(sent).cloned().collect()
        })
    }
}

/// Spans in ascending order, those joined that follow each other for one reason.
fn merge_neighbours(all: Vec<Omitted>) -> Vec<Omitted> {
    let mut spans: Vec<Omitted> = Vec::new();
    for one in all {
        match spans.last_mut() {
            // Neighbours with one reason become one span: a trimmed history of thousands of items
            // is one line.
            Some(span) if span.reason == one.reason && span.last + 1 == one.first => {
                span.last = one.last;
                span.items += one.items;
            }
            _ => spans.push(one),
        }
    }
    spans
}
