//! Fits contributions into their grants and the history into what they leave.
//!
//! Not here: how tokens are divided (`budget`), and what a rewriting is worth (`rewrite`).

use contexture_condense::{has_read_tool, read_tool};
use contexture_prompt_cache::RewriteValue;

use crate::blocks::{Memo, ViewEntry};
use crate::budget::{
    BudgetRequest, HistoryBudgetRequest, allocate_budget, required_history_weight,
};
use crate::contributions::{PayloadSlot, PlacedContribution, RequestOverhead, fit_contribution};
use crate::error::Refusal;
use crate::history::{HistorySize, TrimPoint};
use crate::input::Window;
use crate::pipeline::attempt::{AssemblyInput, Attempt};
use crate::pipeline::explain::required_segments;
use crate::pipeline::scratch::HistoryMemo;
use crate::rewrite::{
    ClearDecision, PendingPreviews, PreviewDecision, PreviousRequest, RewriteCost, SentContext,
    decide_clearing, preview_savings,
};

/// The result of fitting: everything in its place, or a rewriting that would make more room.
pub(crate) enum FittedParts {
    Cut(Vec<PlacedContribution>, TrimPoint, Option<RewriteValue>),
    Preview(PreviewDecision),
    Clear(ClearDecision),
}

/// Fits the contributions into their grants and the history into what they leave.
pub(crate) fn fit_to_budget(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    overhead: &RequestOverhead,
    (full, planned): (Vec<PlacedContribution>, TrimPoint),
    (memo, known): (&mut Memo, &mut HistoryMemo),
) -> Result<FittedParts, Refusal> {
    let history = &call.prepared.history;
    let required = history.required_messages().into_iter();
    let singles: Vec<(usize, u64)> = required.map(|kept| (kept.round, kept.weight())).collect();
    let policy = &call.input.request.history;
    let mut claim = HistoryBudgetRequest {
        rounds: &history.round_weights,
        last: history.last,
        singles: &singles,
        frontier: planned.round,
        required_weight: planned.required_weight(),
        low_water: policy.trim.low_water,
        floor: 0,
        trims_to_low_water: false,
        window: None,
    };
    let placed = fit_contributions(call, slots, overhead, full, &claim, memo)?;
    let taken: u64 = placed.iter().map(PlacedContribution::weight).sum();
    let mut room = call
        .limit
        .saturating_sub(overhead.weight())
        .saturating_sub(taken);
    match policy.window {
        Window::Whole => {}
        Window::Turns(turns) => {
            claim.window = planned.window_start(turns, history, claim.low_water);
        }
        // Never below what is required: a window narrows the view, it does not refuse requests.
        Window::Tokens(tokens) => room = room.min(tokens.max(required_history_weight(&claim))),
    }
    let cost = call.rewrite_cost(overhead, slots, &placed, &planned);
    claim.floor = cost.minimum_cacheable_weight(room);
    let size = HistorySize {
        history: claim.planned_weight(),
        room,
        floor: claim.floor,
    };
    let value = match call.decide_rewriting(overhead, slots, &planned, (size, &cost), (memo, known))
    {
        RewriteDecision::Preview(previews) => return Ok(FittedParts::Preview(previews)),
        RewriteDecision::Clear(clearing) => return Ok(FittedParts::Clear(clearing)),
        RewriteDecision::Unchanged(value) => value,
    };
    // Where clearing was needed and did not suffice, the history is cut in the same step, down to the
    // mark: else each of the next calls would clear a little more.
    claim.trims_to_low_water = call.trims_to_low_water
        || matches!(call.attempt, Attempt::Cleared(clearing, _) if clearing.forced);
    let trim = planned.fit_to_room(room, &claim, history);
    Ok(FittedParts::Cut(placed, trim, value))
}

/// Divides the limit and shortens each contribution to its grant.
fn fit_contributions(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    overhead: &RequestOverhead,
    full: Vec<PlacedContribution>,
    history: &HistoryBudgetRequest<'_>,
    memo: &mut Memo,
) -> Result<Vec<PlacedContribution>, Refusal> {
    let claims: Vec<BudgetRequest> = slots.iter().zip(&full).map(budget_request_of).collect();
    let required = required_history_weight(history);
    let grants = allocate_budget(call.limit, overhead.weight(), &claims, required)
        .map_err(|_| does_not_fit(call, slots, &full, overhead))?;
    let mut placed = Vec::with_capacity(full.len());
    for ((slot, full), grant) in slots.iter().zip(full).zip(grants) {
        placed.push(fit_contribution(slot, full, grant, call.lowerer, memo)?);
    }
    Ok(placed)
}

/// The refusal of a request whose required parts exceed the limit, with each of them by name.
fn does_not_fit(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    full: &[PlacedContribution],
    overhead: &RequestOverhead,
) -> Refusal {
    let request = call.input.request;
    let segments = required_segments(&call.prepared.history, slots, full, overhead);
    Refusal::DoesNotFit {
        needed: segments.iter().map(|segment| segment.tokens).sum(),
        allowed: call.limit,
        window: request.window,
        reserve: request.reserve,
        segments,
    }
}

/// Whether the history is rewritten before it is sent.
enum RewriteDecision {
    Preview(PreviewDecision),
    Clear(ClearDecision),
    /// It is not, with the figures of what was weighed.
    Unchanged(Option<RewriteValue>),
}

impl AssemblyInput<'_> {
    /// Decides about previews first, then about clearing; once each, in the first attempt.
    fn decide_rewriting(
        &self,
        overhead: &RequestOverhead,
        slots: &[PayloadSlot<'_>],
        planned: &TrimPoint,
        (size, cost): (HistorySize, &RewriteCost<'_>),
        (memo, known): (&mut Memo, &mut HistoryMemo),
    ) -> RewriteDecision {
        match self.attempt {
            Attempt::First => {}
            Attempt::Cleared(clearing, _) => return RewriteDecision::Unchanged(clearing.value),
            Attempt::AsBefore => return RewriteDecision::Unchanged(None),
        }
        // Previews come first: they keep what clearing would take away, and the rest can still be read.
        let pending = &mut known.previews;
        let previews =
            self.decide_previews(overhead, slots, planned, (size, cost), (memo, pending));
        if let Some(previews) = previews.filter(|previews| previews.begin) {
            return RewriteDecision::Preview(previews);
        }
        let history = &self.prepared.history;
        let current = &self.view_policy.frontier;
        let clearing =
            decide_clearing(self.input, history, current, size, cost, self.lowerer, memo);
        if clearing.frontier.is_some() {
            return RewriteDecision::Clear(clearing);
        }
        let previews = self.preview_decision.or(previews);
        let value = clearing.value.or(previews.and_then(|one| one.value));
        RewriteDecision::Unchanged(value)
    }

    /// What is at stake with the history as the plan shows it.
    fn rewrite_cost<'s>(
        &'s self,
        overhead: &RequestOverhead,
        slots: &[PayloadSlot<'_>],
        placed: &[PlacedContribution],
        planned: &'s TrimPoint,
    ) -> RewriteCost<'s> {
        let context = SentContext::around_history(overhead, slots, placed);
        let before = self.input.plan.prefix.as_ref();
        // Other tools or another target mean that the provider holds nothing of this request.
        let same_prefix = before.is_some_and(|prefix| {
            prefix.target == self.target && prefix.tools == overhead.tools_hash
        });
        let before = PreviousRequest {
            same_prefix,
            payback_calls: self.remaining_payback_calls(),
        };
        RewriteCost::for_request(
            self.input,
            context,
            planned.sent_blocks(&self.prepared.history),
            before,
        )
    }

    /// Whether previews begin now; `None` if there is nothing to preview, or all of it is already.
    fn decide_previews(
        &self,
        overhead: &RequestOverhead,
        slots: &[PayloadSlot<'_>],
        planned: &TrimPoint,
        (size, cost): (HistorySize, &RewriteCost<'_>),
        (memo, pending): (&mut Memo, &mut PendingPreviews),
    ) -> Option<PreviewDecision> {
        let policy = self.view_policy.pending_previews()?;
        let history = &self.prepared.history;
        let counting = (self.lowerer, &mut *memo);
        let mut change = preview_savings(policy, history, planned, pending, counting)?;
        let request = self.input.request;
        if !has_read_tool(&request.tools) {
            let mut request = request.clone();
            request.tools.push(read_tool());
            let with = RequestOverhead::measure_request(&request, slots, self.lowerer, memo);
            // The tool costs its definition in every call, and its appearance changes the beginning of
            // the prefix.
            change.tools = Some(with.tools + with.framing - overhead.tools - overhead.framing);
        }
        // New tools stand before all thinking.
        let edited = if change.tools.is_some() {
            0
        } else {
            change.first
        };
        let weigh = |entry: &ViewEntry| self.lowerer.count_item(entry, memo).high;
        change.thinking = history.lost_thinking(edited, self.input.request, weigh);
        Some(PreviewDecision::decide(policy, size, cost, change))
    }
}

fn budget_request_of((slot, full): (&PayloadSlot<'_>, &PlacedContribution)) -> BudgetRequest {
    let budget = &slot.contribution.budget;
    BudgetRequest {
        required: slot.contribution.is_required(),
        natural: full.weight(),
        min: budget.min,
        max: budget.max.unwrap_or(u64::MAX),
        share: budget.share,
    }
}
