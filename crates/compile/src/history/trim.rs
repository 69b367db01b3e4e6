//! Where the history begins: at the plan's frontier as long as that fits, at a new one otherwise.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::blocks::{Lowerer, Memo};
use crate::budget::{HistoryBudgetRequest, first_round, per_cent};
use crate::history::rounds::{History, RequiredMessage};
use crate::history::sent_blocks::SentBlocks;
use crate::input::{CompileInput, TrimFrontier};

/// A history that begins with `round`, and what is kept of what stands before it.
#[derive(Debug, Default)]
pub(crate) struct TrimPoint {
    pub(crate) round: usize,
    pub(crate) kept: Vec<RequiredMessage>,
    /// Whether this compile moved the frontier.
    pub(crate) is_new: bool,
}

impl TrimPoint {
    /// The plan's cut, if the plan is for this target and this path; nothing cut otherwise.
    pub(crate) fn from_plan(
        input: &CompileInput<'_>,
        target: &str,
        history: &History,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Self {
        let same_target = input
            .plan
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.target == target);
        // Another model or window has another budget, so its cut says nothing here.
        let Some(trim) = input.plan.trim.as_ref().filter(|_| same_target) else {
            return Self::default();
        };
        let round = history.round_starting_with(trim.index, trim.hash, &input.path);
        // A cut behind the last round would leave nothing to answer.
        let Some(round) = round.filter(|round| *round <= history.last) else {
            return Self::default();
        };
        let question = trim
            .question
            .and_then(|index| history.user_message_entry(index))
            .and_then(|entry| history.lower_single(entry, lowerer, memo));
        let pinned =
            |kept: &RequiredMessage| history.pinned.iter().any(|other| other.round == kept.round);
        let first = [&history.opening, &history.task]
            .into_iter()
            .flatten()
            .cloned();
        let compactions = history.compactions.iter().cloned();
        let mut kept: Vec<RequiredMessage> = first
            .chain(question)
            .chain(compactions)
            .filter(|kept| !pinned(kept))
            .collect();
        kept.extend(history.pinned.iter().cloned());
        // The same message can be opening, task and question at once; sorted by entry, duplicates are
        // neighbours.
        kept.sort_by_key(|kept| kept.entry);
        kept.dedup_by_key(|kept| kept.entry);
        kept.retain(|kept| kept.round < round);
        Self {
            round,
            kept,
            is_new: false,
        }
    }

    /// What the kept messages weigh.
    pub(crate) fn required_weight(&self) -> u64 {
        self.kept.iter().map(RequiredMessage::weight).sum()
    }

    /// The first round of a window of so many turns, if more than those are sent: with fewer turns, so
    /// that the next calls extend it.
    pub(crate) fn window_start(
        &self,
        turns: u32,
        history: &History,
        low_water: u8,
    ) -> Option<usize> {
        let turns = u64::from(turns.max(1));
        if history.turn_count_from(self.round) as u64 <= turns {
            return None;
        }
        // Cut to fewer turns than the window holds, for the same reason as for tokens: each cut breaks
        // the cached prefix.
        let keep = per_cent(turns, low_water).max(1);
        let start = history.turn_entry(u32::try_from(keep).unwrap_or(u32::MAX))?;
        // The round in which they begin: it cannot be cut.
        Some(
            history
                .rounds
                .partition_point(|round| round.entries.end <= start),
        )
    }

    /// The same cut if it fits into `room`, else a new one.
    pub(crate) fn fit_to_room(
        self,
        room: u64,
        claim: &HistoryBudgetRequest<'_>,
        history: &History,
    ) -> Self {
        // Staying at the plan's cut keeps every byte that was sent before.
        let Some(round) = first_round(claim, room) else {
            return self;
        };
        let kept = history
            .required_messages()
            .into_iter()
            .filter(|kept| kept.round < round);
        Self {
            round,
            kept: kept.cloned().collect(),
            is_new: true,
        }
    }

    /// What is sent of the history.
    pub(crate) fn sent_blocks<'h>(&'h self, history: &'h History) -> SentBlocks<'h> {
        let start = history
            .rounds
            .get(self.round)
            .map_or(history.blocks.len(), |round| round.blocks.start);
        SentBlocks::new(&self.kept, history, start)
    }

    /// The path indexes of what is kept of rounds that are cut.
    fn kept_sources(&self) -> Vec<usize> {
        let kept = self.kept.iter().flat_map(|kept| &kept.sources);
        kept.copied().collect()
    }

    /// What is left out. `known` is what an earlier cut of the same history left out; the same cut leaves out the same.
    pub(crate) fn trimmed_items(
        &self,
        history: &History,
        known: &mut Option<TrimmedItems>,
    ) -> TrimmedItems {
        let kept = self.kept_sources();
        if let Some(known) = known
            && (known.round, &*known.kept) == (self.round, &*kept)
        {
            return known.clone();
        }
        let shown: BTreeSet<usize> = kept.iter().copied().collect();
        let cut = 0..self.round;
        let all = history.source_indexes(&cut);
        let mut out: Vec<usize> = all.filter(|source| !shown.contains(source)).collect();
        out.sort_unstable();
        let trimmed = TrimmedItems {
            round: self.round,
            kept: kept.into(),
            count: out.len(),
            spans: join_indexes(&out).into(),
        };
        *known = Some(trimmed.clone());
        trimmed
    }

    /// The cut as the plan keeps it; `None` if nothing is cut.
    pub(crate) fn trim_frontier(
        &self,
        history: &History,
        input: &CompileInput<'_>,
    ) -> Option<TrimFrontier> {
        if self.round == 0 {
            return None;
        }
        let index = history.first_source(self.round)?;
        let mut kept = self.kept.iter();
        let question = kept.find(|kept| history.required_role(kept) == "question");
        Some(TrimFrontier {
            index,
            hash: input.path.get(index)?.hash,
            question: question.and_then(|kept| kept.sources.first().copied()),
        })
    }
}

/// What a cut leaves out: spans of indexes on the path, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrimmedItems {
    /// The cut: its round, and the items that are kept of what stands before it.
    round: usize,
    kept: Arc<[usize]>,
    /// The first and the last index of each span.
    pub(crate) spans: Arc<[(usize, usize)]>,
    /// How many items they are together.
    pub(crate) count: usize,
}

impl TrimmedItems {
    /// The first and the last of all.
    pub(crate) fn ends(&self) -> Option<(usize, usize)> {
        let first = self.spans.first()?.0;
        self.spans.last().map(|(_, last)| (first, *last))
    }

    /// Whether an item is left out.
    pub(crate) fn contains(&self, index: usize) -> bool {
        let at = self.spans.partition_point(|(_, last)| *last < index);
        self.spans.get(at).is_some_and(|(first, _)| *first <= index)
    }
}

/// Ascending indexes as spans.
fn join_indexes(indexes: &[usize]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for index in indexes {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => spans.push((*index, *index)),
        }
    }
    spans
}
