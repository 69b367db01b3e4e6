//! Leaves out thinking behind an edit, for models that bind thinking to all that stood before it.
//!
//! What counts as an edit is the business of [`contexture_prompt_cache::AnsweredHistory`]; here is which items are thinking,
//! and what is shown otherwise than it is.

use contexture_ir::{Item, Message, Role};
use contexture_prompt_cache::{EditedThinking, PathBlock, ThinkingFrontier};
use contexture_report::{OmitReason, Rewriting};
use contexture_wire::{Format, thinking_as_text};

use crate::blocks::{LoweredBlock, ShownAs, ViewEntry};
use crate::history::prepared::PreparedHistory;
use crate::history::rounds::History;
use crate::history::trim::TrimPoint;
use crate::history::view_policy::EntriesAndOmissions;
use crate::input::CompileRequest;

/// Leaves out the thinking that the frontier does, or shows what it says as text.
pub(crate) fn leave_out_thinking(
    entries: Vec<ViewEntry>,
    edited: Option<(ThinkingFrontier, EditedThinking)>,
    format: Format,
) -> EntriesAndOmissions {
    let Some((frontier, policy)) = edited else {
        return (entries, Vec::new());
    };
    let identity = format.spec().identity();
    let mut hidden = Vec::new();
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        let goes = entry.source.filter(|at| frontier.leaves_out(*at));
        let (Some(index), Item::Reasoning(thinking)) = (goes, &*entry.item) else {
            kept.push(entry);
            continue;
        };
        let text = thinking_as_text(thinking).filter(|_| policy == EditedThinking::AsText);
        match text.map(|text| Message::text(Role::Assistant, text)) {
            _ if !identity.is_signed_thinking(&entry.item) => kept.push(entry),
            Some(said) => kept.push(entry.with_item(said.into(), ShownAs::ThinkingText)),
            None => hidden.push((index, OmitReason::BoundThinking)),
        }
    }
    (kept, hidden)
}

/// The thinking that goes with an edit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LostThinking {
    /// Its tokens; none where its text stays.
    pub(crate) tokens: u64,
    /// Whether some of it belongs to the turn that is being answered.
    pub(crate) in_open_turn: bool,
}

impl History {
    /// The thinking that is shown and bound to what stands before it, with the places of its entries.
    pub(crate) fn signed_thinking(
        &self,
        format: Format,
    ) -> impl Iterator<Item = (usize, &ViewEntry)> {
        let identity = format.spec().identity();
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(_, entry)| identity.is_signed_thinking(&entry.item))
    }

    /// The thinking that goes if an entry is edited.
    pub(crate) fn lost_thinking(
        &self,
        edited: usize,
        request: &CompileRequest,
        weigh: impl FnMut(&ViewEntry) -> u64,
    ) -> LostThinking {
        if !request.bound_thinking {
            return LostThinking::default();
        }
        let question = self.question.as_ref().map_or(0, |question| question.entry);
        let bound = self.signed_thinking(request.dialect.format);
        let (places, entries): (Vec<usize>, Vec<&ViewEntry>) =
            bound.filter(|(at, _)| *at >= edited).unzip();
        let gone = entries.into_iter();
        let gone = gone.filter(|entry| request.loses_thinking(&entry.item));
        LostThinking {
            tokens: gone.map(weigh).sum(),
            in_open_turn: places.last().is_some_and(|at| *at > question),
        }
    }
}

impl PreparedHistory {
    /// What is sent behind a cut, to be compared with what was sent before.
    pub(crate) fn path_blocks(&self, trim: &TrimPoint) -> Vec<PathBlock> {
        let kept: usize = trim.kept.iter().map(|kept| kept.blocks.len()).sum();
        let blocks = trim.sent_blocks(&self.history).iter().enumerate();
        let path_block = |(at, block): (usize, &LoweredBlock)| {
            let own = self.history.entries.get(block.entries.clone());
            let sources = || own.unwrap_or_default().iter().filter_map(|one| one.source);
            // What is kept of a cut counts its entries for itself.
            let items = sources().min().zip(sources().max()).filter(|_| at >= kept);
            PathBlock {
                key: block.key,
                items,
            }
        };
        blocks.map(path_block).collect()
    }

    /// The indexes on the path at which something else is shown than the item, but for thinking that is left out.
    pub(crate) fn changes(&self, trim: &TrimPoint) -> impl Iterator<Item = usize> {
        let hidden = self.hidden.iter().filter(|(_, why)| {
            let why = *why;
            matches!(
                why,
                OmitReason::Covered | OmitReason::Cleared | OmitReason::Host
            )
        });
        let rewritten = self
            .rewritten
            .iter()
            .filter(|one| one.rewriting != Rewriting::ThinkingText);
        let repaired = self.repairs.iter().filter_map(|repair| repair.index);
        let pairs = self.history.entries.windows(2);
        // What the host or a repair has put behind an item, and what stands behind an item that was moved.
        let added = pairs.filter_map(|pair| match pair {
            [before, added] if added.source.is_none() => before.source.map(|at| at + 1),
            [before, moved] if before.source > moved.source => moved.source,
            _ => None,
        });
        let shown = hidden
            .map(|(at, _)| *at)
            .chain(rewritten.map(|one| one.index));
        let all = shown.chain(repaired).chain(self.dropped.iter().copied());
        all.chain(added).chain((trim.round > 0).then_some(0))
    }
}
