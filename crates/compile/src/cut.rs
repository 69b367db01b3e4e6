//! Where the history begins: at the plan's frontier as long as that fits, at a new one otherwise.

use crate::history::{History, Single};
use crate::memo::Memo;
use crate::passes::budget::{HistoryClaim, first_round};
use crate::passes::lower::{Piece, Press};
use crate::plan::TrimFrontier;
use crate::request::CompileInput;

/// A history that begins with `round`, and the messages kept of what stands before it.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub(crate) round: usize,
    pub(crate) singles: Vec<Single>,
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
        let first = [&history.opening, &history.task].into_iter().flatten();
        let mut singles: Vec<Single> = first.cloned().collect();
        singles.extend(question);
        singles.dedup_by_key(|single| single.entry);
        singles.retain(|single| single.round < round);
        Self {
            round,
            singles,
            moved: false,
        }
    }

    /// What the kept messages weigh.
    pub(crate) fn singles_weight(&self) -> u64 {
        self.singles
            .iter()
            .map(|single| single.piece.weight())
            .sum()
    }

    /// The same cut if it fits into `room`, else a new one.
    pub(crate) fn within(self, room: u64, claim: &HistoryClaim<'_>, history: &History) -> Self {
        let Some(round) = first_round(claim, room) else {
            return self;
        };
        let before = |single: &&Single| single.round < round;
        Self {
            round,
            singles: history.singles().filter(before).cloned().collect(),
            moved: true,
        }
    }

    /// What is sent of the history.
    pub(crate) fn pieces<'h>(&'h self, history: &'h History) -> Vec<&'h Piece> {
        let start = history
            .rounds
            .get(self.round)
            .map_or(history.pieces.len(), |round| round.pieces.start);
        let kept = history.pieces.get(start..).unwrap_or_default();
        let singles = self.singles.iter().map(|single| &single.piece);
        singles.chain(kept).collect()
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
        let mut singles = self.singles.iter();
        let question = singles.find(|single| history.role_of(single) == "question");
        Some(TrimFrontier {
            index,
            hash: input.path.get(index)?.hash,
            question: question.and_then(|single| single.source),
        })
    }
}
