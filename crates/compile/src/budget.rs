//! Who gets how many tokens.
//!
//! What is required comes first, whole: framing, tools, the system prompt, pinned contributions, the
//! first user message and the last round. Then the minima of the other contributions in their order,
//! then their shares; the rest is the history's, newest first, in whole rounds.
//!
//! A history that was cut stays cut where it was (the frontier of the plan) until it no longer fits;
//! then it is cut to a low-water mark, so that the calls after this one extend it again.

use crate::growing::{RangeSums, Totals};

/// A contribution that asks for room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetRequest {
    pub(crate) required: bool,
    /// What it would take whole.
    pub(crate) natural: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// Share in per cent.
    pub(crate) share: u8,
}

/// What a round takes of the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundWeight(pub(crate) u64);

impl Totals for RoundWeight {
    fn add(&mut self, other: &Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// What the history asks for.
#[derive(Clone, Debug)]
pub(crate) struct HistoryBudgetRequest<'a> {
    /// The rounds, oldest first.
    pub(crate) rounds: &'a RangeSums<RoundWeight>,
    /// The first round that is required, with all after it; the number of rounds if none is.
    pub(crate) last: usize,
    /// Messages that are kept when their round is cut: the round and the message's weight alone.
    pub(crate) singles: &'a [(usize, u64)],
    /// The first round that the plan still sends.
    pub(crate) frontier: usize,
    /// The weight of the messages that the plan keeps of what stands before its frontier.
    pub(crate) required_weight: u64,
    /// Per cent of the history's room that is kept when it is cut anew.
    pub(crate) low_water: u8,
    /// It is not cut below this where it fits: the request would be too short to be cached.
    pub(crate) floor: u64,
    /// Whether it is cut down to the mark though it fits: clearing did not bring it there.
    pub(crate) trims_to_low_water: bool,
    /// The first round of the window, for a history that is larger.
    pub(crate) window: Option<usize>,
}

impl HistoryBudgetRequest<'_> {
    /// The weight of a round and all behind it.
    fn weight_of_rounds(&self, from: usize) -> u64 {
        self.rounds.sum(from..self.rounds.len()).0
    }

    /// What the history takes as the plan sends it.
    pub(crate) fn planned_weight(&self) -> u64 {
        let frontier = self.frontier.min(self.last);
        self.weight_of_rounds(frontier)
            .saturating_add(self.required_weight)
    }
}

/// What must be sent is larger than what may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetExceeded {
    pub(crate) needed: u64,
}

/// Divides what `fixed` (framing, tools) and the required `history` leave of the limit
/// among the claims: for each the most it may take. What is required gets its natural size.
pub(crate) fn allocate_budget(
    limit: u64,
    fixed: u64,
    claims: &[BudgetRequest],
    history: u64,
) -> Result<Vec<u64>, BudgetExceeded> {
    // What is required is taken off before anything is divided: a request that cannot hold it is
    // refused, and nobody else gets tokens that it needs.
    let required = claims
        .iter()
        .filter(|claim| claim.required)
        .map(|claim| claim.natural)
        .fold(fixed.saturating_add(history), u64::saturating_add);
    let mut room = limit
        .checked_sub(required)
        .ok_or(BudgetExceeded { needed: required })?;
    let mut granted: Vec<u64> = Vec::with_capacity(claims.len());
    for claim in claims {
        // Minima go in the order of the payload, so a later contribution never takes what an earlier
        // one was promised.
        let floor = claim.min.min(claim.max).min(claim.natural).min(room);
        granted.push(if claim.required { claim.natural } else { floor });
        room -= if claim.required { 0 } else { floor };
    }
    // Shares are of what is left after all minima. They are fixed before the first is granted, so the
    // order of contributions changes nothing as long as there is room.
    let pool = room;
    for (claim, granted) in claims.iter().zip(&mut granted) {
        if claim.required {
            continue;
        }
        let want = claim.natural.min(claim.max).saturating_sub(*granted);
        let extra = want.min(per_cent(pool, claim.share)).min(room);
        *granted += extra;
        room -= extra;
    }
    Ok(granted)
}

/// The weight of the history if it is cut anew, to begin with round `from`.
fn weight_from_round(claim: &HistoryBudgetRequest<'_>, from: usize) -> u64 {
    let singles = claim.singles.iter().filter(|(round, _)| *round < from);
    claim
        .weight_of_rounds(from)
        .saturating_add(sum_weights(singles.map(|(_, weight)| *weight)))
}

fn sum_weights(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

/// The weight of the history that cannot be cut.
pub(crate) fn required_history_weight(claim: &HistoryBudgetRequest<'_>) -> u64 {
    weight_from_round(claim, claim.last)
}

/// The first round to send within `room`, which is at least [`required_history_weight`]; `None` to stay at
/// the plan's frontier.
pub(crate) fn first_round(claim: &HistoryBudgetRequest<'_>, room: u64) -> Option<usize> {
    let frontier = claim.frontier.min(claim.last);
    let total = claim.planned_weight();
    // Cutting to a mark below the limit leaves room for the next calls to extend this history: each
    // cut throws the cached prefix away, so it should happen seldom.
    let mark = per_cent(room, claim.low_water);
    let most = if claim.trims_to_low_water {
        mark.max(claim.floor)
    } else {
        room
    };
    let fits = total <= most;
    let outside = claim.window.filter(|first| *first > frontier);
    if fits && outside.is_none() {
        return None;
    }
    let mut from = outside.unwrap_or(frontier).min(claim.last);
    let mut total = weight_from_round(claim, from);
    while from < claim.last && !fits && total > mark {
        let less = total.saturating_sub(claim.rounds.get(from).map_or(0, |round| round.0));
        // A required message of a round that is cut stays, so what cutting frees is less than the round weighs.
        let freed = claim.singles.iter().filter(|(round, _)| *round == from);
        let less = less.saturating_add(sum_weights(freed.map(|(_, weight)| *weight)));
        // It fits already and would become too short to be cached: stop above the mark.
        if total <= room && less < claim.floor {
            break;
        }
        total = less;
        from += 1;
    }
    Some(from)
}

/// A part of a number.
pub(crate) fn per_cent(of: u64, share: u8) -> u64 {
    // In u128: a window of u64 tokens times 100 would overflow.
    let share = u128::from(share.min(100));
    u64::try_from(u128::from(of) * share / 100).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(natural: u64, min: u64, max: u64, share: u8) -> BudgetRequest {
        BudgetRequest {
            required: false,
            natural,
            min,
            max,
            share,
        }
    }

    #[track_caller]
    fn check(limit: u64, fixed: u64, claims: &[BudgetRequest], history: u64, expected: &[u64]) {
        let grants = allocate_budget(limit, fixed, claims, history).unwrap();
        assert_eq!(grants, expected);
    }

    #[test]
    fn minima_then_shares_then_the_history() {
        let all = u64::MAX;
        check(100, 10, &[], 20, &[]);
        check(100, 10, &[claim(30, 0, all, 100)], 20, &[30]);
        check(100, 10, &[claim(300, 0, all, 100)], 20, &[70]);
        check(100, 10, &[claim(300, 0, all, 50)], 20, &[35]);
        check(100, 10, &[claim(300, 0, 25, 100)], 20, &[25]);
        // The second minimum is granted before the first share.
        check(
            100,
            10,
            &[claim(300, 0, all, 100), claim(40, 40, all, 100)],
            20,
            &[30, 40],
        );
        // A minimum larger than what there is takes what there is.
        check(
            100,
            10,
            &[claim(300, 300, all, 0), claim(40, 40, all, 0)],
            20,
            &[70, 0],
        );
    }

    #[test]
    fn what_is_required_is_whole_or_refused() {
        let required = BudgetRequest {
            required: true,
            ..claim(60, 0, 10, 0)
        };
        check(100, 10, &[required], 20, &[60]);
        assert_eq!(
            allocate_budget(80, 10, &[required], 20),
            Err(BudgetExceeded { needed: 90 })
        );
    }

    #[track_caller]
    fn check_cut(claim: &HistoryBudgetRequest<'_>, room: u64, expected: Option<usize>) {
        let from = first_round(claim, room);
        assert_eq!(from, expected, "{claim:?} in {room}");
        if let Some(from) = from {
            assert!(weight_from_round(claim, from) <= room.max(required_history_weight(claim)));
        }
    }

    #[test]
    fn the_history_is_cut_to_the_mark_and_stays_there() {
        let mut rounds = RangeSums::default();
        for _ in 0..10 {
            rounds.push(RoundWeight(10));
        }
        let claim = |frontier, latched| HistoryBudgetRequest {
            rounds: &rounds,
            last: 9,
            singles: &[(0, 4)],
            frontier,
            required_weight: latched,
            low_water: 70,
            floor: 0,
            trims_to_low_water: false,
            window: None,
        };
        check_cut(&claim(0, 0), 100, None);
        // 4 + 60 ≤ 69 < 4 + 70
        check_cut(&claim(0, 0), 99, Some(4));
        check_cut(&claim(4, 4), 99, None);
        check_cut(&claim(4, 4), 64, None);
        check_cut(&claim(4, 4), 63, Some(6));
        // The mark is below what is required: only that is left.
        check_cut(&claim(0, 0), 14, Some(9));
        check_cut(&claim(20, 4), 99, None);
        // It is not cut below what can be cached, unless it does not fit there.
        let floor = |floor| HistoryBudgetRequest {
            floor,
            ..claim(0, 0)
        };
        check_cut(&floor(74), 99, Some(3));
        check_cut(&floor(75), 99, Some(2));
        check_cut(&floor(94), 99, Some(1));
        check_cut(&floor(98), 99, Some(1));
    }
}
