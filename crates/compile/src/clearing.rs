//! Whether old content is cleared now: because it must, or because it pays.

use crate::cache::bill::Rates;
use crate::cache::worth::{CacheState, Rewrite, Worth, worth};
use crate::entry::Entry;
use crate::history::History;
use crate::memo::Memo;
use crate::passes::clear::{Further, Size, advance};
use crate::passes::lower::Press;
use crate::plan::ClearFrontier;
use crate::request::CompileInput;

/// What was decided.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clearing {
    /// The new frontier, if it moves.
    pub(crate) frontier: Option<ClearFrontier>,
    /// Whether it moves because the history does not fit.
    pub(crate) forced: bool,
    /// The figures, if it was a matter of money.
    pub(crate) worth: Option<Worth>,
}

/// Decides for a history of this size, of which `current` is cleared.
pub(crate) fn decide(
    input: &CompileInput<'_>,
    history: &History,
    current: &ClearFrontier,
    size: Size,
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
    if !clearing.forced {
        let worth = pays(input, history, &further, policy.calls);
        clearing.worth = Some(worth);
        if !worth.rewrite {
            return clearing;
        }
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

/// Whether what a further frontier saves is more than what writing the cache anew costs.
fn pays(input: &CompileInput<'_>, history: &History, further: &Further, calls: u64) -> Worth {
    let cache = &input.request.cache;
    let rounds = history.rounds.iter();
    let touched = rounds.filter(|round| round.entries.end > further.first);
    let after: u64 = touched.map(|round| round.weight).sum();
    // Before the first call nothing is cached.
    let state = match input.plan.sent {
        None => CacheState::Cold,
        Some(_) => cache.state,
    };
    let rewrite = Rewrite {
        removed: further.saved,
        behind: after.saturating_sub(further.saved),
        calls,
        ttl: cache.marks.map(|marks| marks.history).unwrap_or_default(),
        cache: state,
    };
    let rates = Rates::of(&cache.prices, cache.rules.kind, after);
    worth(&rewrite, rates.as_ref())
}
