//! Who gets how many tokens.
//!
//! What is required comes first, whole: framing, tools, the system prompt, pinned contributions, the
//! first user message and the last round. Then the minima of the other contributions in their order,
//! then their shares; the rest is the history's, newest first, in whole rounds.
//!
//! A history that was cut stays cut where it was (the frontier of the plan) until it no longer fits;
//! then it is cut to a low-water mark, so that the calls after this one extend it again.

/// A contribution that asks for room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) required: bool,
    /// What it would take whole.
    pub(crate) natural: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// Per cent.
    pub(crate) share: u8,
}

/// What the history asks for.
#[derive(Debug, Default)]
pub(crate) struct HistoryClaim<'a> {
    /// The weight of each round, oldest first.
    pub(crate) rounds: &'a [u64],
    /// The first round that is required, with all after it; `rounds.len()` if none is.
    pub(crate) last: usize,
    /// Messages that are kept when their round is cut: the round and the message's weight alone.
    pub(crate) singles: &'a [(usize, u64)],
    /// The first round that the plan still sends.
    pub(crate) frontier: usize,
    /// The weight of the messages that the plan keeps of what stands before its frontier.
    pub(crate) latched: u64,
    /// Per cent of the history's room that is kept when it is cut anew.
    pub(crate) low_water: u8,
    /// It is not cut below this where it fits: the request would be too short to be cached.
    pub(crate) floor: u64,
    /// Whether it is cut down to the mark though it fits: clearing did not bring it there.
    pub(crate) to_the_mark: bool,
    /// The first round of the window, for a history that is larger.
    pub(crate) window: Option<usize>,
}

impl HistoryClaim<'_> {
    /// What the history takes as the plan sends it.
    pub(crate) fn weight_now(&self) -> u64 {
        let frontier = self.frontier.min(self.last);
        let sent = self.rounds.get(frontier..).unwrap_or_default();
        sum(sent.iter().copied()).saturating_add(self.latched)
    }
}

/// What must be sent is larger than what may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overfull {
    pub(crate) needed: u64,
}

/// Divides what `fixed` (framing, tools) and the required `history` leave of the limit
/// among the claims: for each the most it may take. What is required gets its natural size.
pub(crate) fn grants(
    limit: u64,
    fixed: u64,
    claims: &[Claim],
    history: u64,
) -> Result<Vec<u64>, Overfull> {
    let required = claims
        .iter()
        .filter(|claim| claim.required)
        .map(|claim| claim.natural)
        .fold(fixed.saturating_add(history), u64::saturating_add);
    let mut room = limit
        .checked_sub(required)
        .ok_or(Overfull { needed: required })?;
    let mut granted: Vec<u64> = Vec::with_capacity(claims.len());
    for claim in claims {
        let floor = claim.min.min(claim.max).min(claim.natural).min(room);
        granted.push(if claim.required { claim.natural } else { floor });
        room -= if claim.required { 0 } else { floor };
    }
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
fn weight(claim: &HistoryClaim<'_>, from: usize) -> u64 {
    let singles = claim.singles.iter().filter(|(round, _)| *round < from);
    sum(claim.rounds.get(from..).unwrap_or_default().iter().copied())
        .saturating_add(sum(singles.map(|(_, weight)| *weight)))
}

fn sum(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

/// The weight of the history that cannot be cut.
pub(crate) fn required_history(claim: &HistoryClaim<'_>) -> u64 {
    weight(claim, claim.last)
}

/// The first round to send within `room`, which is at least [`required_history`]; `None` to stay at
/// the plan's frontier.
pub(crate) fn first_round(claim: &HistoryClaim<'_>, room: u64) -> Option<usize> {
    let frontier = claim.frontier.min(claim.last);
    let total = claim.weight_now();
    let mark = per_cent(room, claim.low_water);
    let most = if claim.to_the_mark {
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
    let mut total = weight(claim, from);
    while from < claim.last && !fits && total > mark {
        let less = total.saturating_sub(claim.rounds.get(from).copied().unwrap_or_default());
        let freed = claim.singles.iter().filter(|(round, _)| *round == from);
        let less = less.saturating_add(sum(freed.map(|(_, weight)| *weight)));
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
    let share = u128::from(share.min(100));
    u64::try_from(u128::from(of) * share / 100).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(natural: u64, min: u64, max: u64, share: u8) -> Claim {
        Claim {
            required: false,
            natural,
            min,
            max,
            share,
        }
    }

    #[track_caller]
    fn check(limit: u64, fixed: u64, claims: &[Claim], history: u64, expected: &[u64]) {
        let grants = grants(limit, fixed, claims, history).unwrap();
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
        let required = Claim {
            required: true,
            ..claim(60, 0, 10, 0)
        };
        check(100, 10, &[required], 20, &[60]);
        assert_eq!(
            grants(80, 10, &[required], 20),
            Err(Overfull { needed: 90 })
        );
    }

    #[track_caller]
    fn check_cut(claim: &HistoryClaim<'_>, room: u64, expected: Option<usize>) {
        let from = first_round(claim, room);
        assert_eq!(from, expected, "{claim:?} in {room}");
        if let Some(from) = from {
            assert!(weight(claim, from) <= room.max(required_history(claim)));
        }
    }

    #[test]
    fn the_history_is_cut_to_the_mark_and_stays_there() {
        let rounds = [10; 10];
        let claim = |frontier, latched| HistoryClaim {
            rounds: &rounds,
            last: 9,
            singles: &[(0, 4)],
            frontier,
            latched,
            low_water: 70,
            ..HistoryClaim::default()
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
        let floor = |floor| HistoryClaim {
            floor,
            ..claim(0, 0)
        };
        check_cut(&floor(74), 99, Some(3));
        check_cut(&floor(75), 99, Some(2));
        check_cut(&floor(94), 99, Some(1));
        check_cut(&floor(98), 99, Some(1));
    }
}
