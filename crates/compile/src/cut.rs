//! Where the history begins: at the plan's frontier as long as that fits, at a new one otherwise.

use std::collections::BTreeSet;

use crate::history::{History, Kept};
use crate::memo::Memo;
use crate::passes::budget::{HistoryClaim, first_round, per_cent};
use crate::passes::lower::{Piece, Press};
use crate::plan::TrimFrontier;
use crate::request::CompileInput;

/// A history that begins with `round`, and what is kept of what stands before it.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub(crate) round: usize,
    pub(crate) kept: Vec<Kept>,
    /// Whether this compile moved the frontier.
    pub(crate) moved: bool,
}

impl Cut {
    /// The plan's cut, if the plan is for this target and this path; nothing cut otherwise.
    pub(crate) fn latched(
        input: &CompileInput<'_>,
        target: &str,
        history: &History,
        press: &Press<'_>,
        memo: &mut Memo,
    ) -> Self {
        let same_target = input
            .plan
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.target == target);
        let Some(trim) = input.plan.trim.as_ref().filter(|_| same_target) else {
            return Self::default();
        };
        let round = history.round_at(trim.index, trim.hash, input.path);
        let Some(round) = round.filter(|round| *round <= history.last) else {
            return Self::default();
        };
        let question = trim
            .question
            .and_then(|index| history.user_message(index))
            .and_then(|entry| history.single(entry, press, memo));
        let pinned = |kept: &Kept| history.pinned.iter().any(|other| other.round == kept.round);
        let first = [&history.opening, &history.task]
            .into_iter()
            .flatten()
            .cloned();
        let compactions = history.compactions.iter().cloned();
        let mut kept: Vec<Kept> = first
            .chain(question)
            .chain(compactions)
            .filter(|kept| !pinned(kept))
            .collect();
        kept.extend(history.pinned.iter().cloned());
        kept.sort_by_key(|kept| kept.entry);
        kept.dedup_by_key(|kept| kept.entry);
        kept.retain(|kept| kept.round < round);
        Self {
            round,
            kept,
            moved: false,
        }
    }

    /// What the kept messages weigh.
    pub(crate) fn kept_weight(&self) -> u64 {
        self.kept.iter().map(Kept::weight).sum()
    }

    /// The first round of a window of so many turns, if more than those are sent: with fewer turns, so
    /// that the next calls extend it.
    pub(crate) fn window(&self, turns: u32, history: &History, low_water: u8) -> Option<usize> {
        let turns = u64::from(turns.max(1));
        if history.turns_from(self.round) as u64 <= turns {
            return None;
        }
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
    pub(crate) fn within(self, room: u64, claim: &HistoryClaim<'_>, history: &History) -> Self {
        let Some(round) = first_round(claim, room) else {
            return self;
        };
        let kept = history.kept().into_iter().filter(|kept| kept.round < round);
        Self {
            round,
            kept: kept.cloned().collect(),
            moved: true,
        }
    }

    /// What is sent of the history.
    pub(crate) fn pieces<'h>(&'h self, history: &'h History) -> Vec<&'h Piece> {
        let start = history
            .rounds
            .get(self.round)
            .map_or(history.pieces.len(), |round| round.pieces.start);
        let rest = history.pieces.get(start..).unwrap_or_default();
        self.kept
            .iter()
            .flat_map(|kept| &kept.pieces)
            .chain(rest)
            .collect()
    }

    /// The path indexes of what is left out, ascending.
    pub(crate) fn trimmed(&self, history: &History) -> Vec<usize> {
        let kept = self.kept.iter().flat_map(|kept| &kept.sources);
        let kept: BTreeSet<usize> = kept.copied().collect();
        let cut = 0..self.round;
        let all = history.sources(&cut);
        let mut out: Vec<usize> = all.filter(|source| !kept.contains(source)).collect();
        out.sort_unstable();
        out
    }

    /// The cut as the plan keeps it; `None` if nothing is cut.
    pub(crate) fn frontier(
        &self,
        history: &History,
        input: &CompileInput<'_>,
    ) -> Option<TrimFrontier> {
        if self.round == 0 {
            return None;
        }
        let index = history.first_source(self.round)?;
        let mut kept = self.kept.iter();
        let question = kept.find(|kept| history.role_of(kept) == "question");
        Some(TrimFrontier {
            index,
            hash: input.path.get(index)?.hash,
            question: question.and_then(|kept| kept.sources.first().copied()),
        })
    }
}
