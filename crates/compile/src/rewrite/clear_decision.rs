//! Whether old content is cleared now: because it must, or because it pays.

use contexture_prompt_cache::RewriteValue;

use crate::blocks::{Lowerer, Memo, ViewEntry};
use crate::history::{History, HistorySize, advance_frontier};
use crate::input::{ClearFrontier, CompileInput};
use crate::rewrite::rewrite_cost::{HistoryChange, RewriteCost};

/// What was decided.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClearDecision {
    /// The new frontier, if it moves.
    pub(crate) frontier: Option<ClearFrontier>,
    /// Whether it moves because the history does not fit.
    pub(crate) forced: bool,
    /// The figures, if it was a matter of money.
    pub(crate) value: Option<RewriteValue>,
    /// For how many calls it has not paid back yet, if it moves because that pays.
    pub(crate) payback_calls: Option<u64>,
}

/// Decides for a history of this size, of which `current` is cleared.
pub(crate) fn decide_clearing(
    input: &CompileInput<'_>,
    history: &History,
    current: &ClearFrontier,
    size: HistorySize,
    stakes: &RewriteCost<'_>,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> ClearDecision {
    let mut clearing = ClearDecision {
        forced: size.exceeds_budget(),
        ..ClearDecision::default()
    };
    let Some(policy) = input.request.history.clear.policy() else {
        return clearing;
    };
    // Nothing is considered before the trigger fires, so the history is not looked at in most calls.
    let further = size.excess_tokens(policy).and_then(|excess| {
        let weigh = |entry: &ViewEntry| lowerer.count_item(entry, memo).high;
        let is_lost = |entry: &ViewEntry| input.request.loses_thinking(&entry.item);
        advance_frontier(history, current, policy, excess, is_lost, weigh)
    });
    let Some(further) = further else {
        return clearing;
    };
    let left = size.history.saturating_sub(further.saved);
    if clearing.forced && left < size.floor && stakes.is_cached() {
        // The request would be too short to be cached any more. Cutting goes by smaller steps.
        return clearing;
    }
    if !clearing.forced && !policy.always {
        let change = HistoryChange {
            first: further.first,
            saved: further.saved,
            tools: None,
            thinking: history.lost_thinking(further.first, input.request, |entry| {
                lowerer.count_item(entry, memo).high
            }),
        };
        // It still fits: clearing is a matter of money alone.
        let worth = stakes.value_of(change, policy.calls);
        clearing.value = Some(worth);
        if !worth.rewrite {
            return clearing;
        }
        // Kept in the plan: another rewriting for money waits until this one has paid back, or small
        // gains would be spent on one write after another.
        clearing.payback_calls = Some(worth.calls_to_break_even(policy.calls));
    }
    let hash = input
        .path
        .get(further.frontier.repeats)
        .map(|item| item.hash);
    clearing.frontier = hash.map(|hash| ClearFrontier {
        hash,
        ..further.frontier
    });
    clearing
}
