//! Whether old content is cleared now: because it must, or because it pays.

use crate::cache::worth::Worth;
use crate::entry::Entry;
use crate::history::History;
use crate::memo::Memo;
use crate::passes::clear::{Size, advance};
use crate::passes::lower::Press;
use crate::plan::ClearFrontier;
use crate::request::CompileInput;
use crate::stakes::{Change, Stakes};

/// What was decided.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clearing {
    /// The new frontier, if it moves.
    pub(crate) frontier: Option<ClearFrontier>,
    /// Whether it moves because the history does not fit.
    pub(crate) forced: bool,
    /// The figures, if it was a matter of money.
    pub(crate) worth: Option<Worth>,
    /// For how many calls it has not paid back yet, if it moves because that pays.
    pub(crate) owes: Option<u64>,
}

/// Decides for a history of this size, of which `current` is cleared.
pub(crate) fn decide(
    input: &CompileInput<'_>,
    history: &History,
    current: &ClearFrontier,
    size: Size,
    stakes: &Stakes<'_>,
    press: &Press<'_>,
    memo: &mut Memo,
) -> Clearing {
    let mut clearing = Clearing {
        forced: size.is_over(),
        ..Clearing::default()
    };
    let Some(policy) = input.request.history.clear.policy() else {
        return clearing;
    };
    let further = size.excess(policy).and_then(|excess| {
        let weigh = |entry: &Entry| press.item(entry, memo).high;
        advance(history, current, policy, excess, weigh)
    });
    let Some(further) = further else {
        return clearing;
    };
    let left = size.history.saturating_sub(further.saved);
    if clearing.forced && left < size.floor && stakes.is_cached() {
        // The request would be too short to be cached any more. Cutting goes by smaller steps.
        return clearing;
    }
    if !clearing.forced {
        let change = Change {
            first: further.first,
            saved: further.saved,
            tools: None,
        };
        let worth = stakes.worth(change, policy.calls);
        clearing.worth = Some(worth);
        if !worth.rewrite {
            return clearing;
        }
        clearing.owes = Some(worth.paid_back_after(policy.calls));
    }
    let hash = input
        .path
        .get(further.frontier.settled)
        .map(|item| item.hash);
    clearing.frontier = hash.map(|hash| ClearFrontier {
        hash,
        ..further.frontier
    });
    clearing
}
