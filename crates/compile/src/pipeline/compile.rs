//! The passes in their order.
//!
//! `select` (what models may read) · `host` (passes of the host's, here and before repair) · `cover` (compactions in the place of what they stand for) ·
//! `clear` (old content as placeholders) · `repair` (what providers accept) · `lower` (blocks in the
//! target's format, weighed) · `budget` (who gets how much) · `place` (bands in order) · `verify` (the
//! post-condition).
//!
//! `repair` and `lower` come before `budget`, so that what is budgeted is what is sent, and an item's
//! bytes do not depend on where the history is cut. What is cleared is the plan's; only where the
//! history has grown too large is the frontier moved, and then the passes begin again, once.

use contexture_condense::{has_read_tool, read_tool};
use contexture_ir::{ContentHash, concat_hashes};
use contexture_prompt_cache::{CachedPrefix, RewriteValue};
use contexture_tokens::TokenBounds;
use contexture_wire::{Format, ToolNameMap};

use crate::blocks::{LoweredBlock, Lowerer, Memo, VerifyInput, is_sound, verify_payload};
use crate::budget::{
    BudgetRequest, HistoryBudgetRequest, allocate_budget, required_history_weight,
};
use crate::contributions::{
    PayloadSlot, PlacedContribution, RequestOverhead, arrange_slots, bridge_contributions,
    fit_contribution, place_contribution, unit_count,
};
use crate::error::{Cancel, Refusal};
use crate::history::{HistorySize, PreparedHistory, TrimPoint, ViewPolicy};
use crate::input::{
    Advice, Band, ClearFrontier, CompileInput, CompileRequest, Contribution, Plan, PlanDecisions,
    Prefix, Window,
};
use crate::payload::{Payload, apply_caching, assemble_payload, payload_head};
use crate::pipeline::explain::{build_report, required_segments};
use crate::pipeline::outcome::CompileOutcome;
use crate::pipeline::scratch::Scratch;
use crate::report::Report;
use crate::rewrite::{
    ClearDecision, PreviewDecision, PreviousRequest, RewriteCost, SentContext, decide_clearing,
    preview_savings,
};

/// What a compile gives.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The provider's request.
    pub payload: Payload,
    /// What was sent, what was not, and why.
    pub report: Report,
    /// The plan for the next compile on this path.
    pub plan: Plan,
    /// What the host may want to do before the next call.
    pub advice: Advice,
    /// The tools whose names the target refuses: its answer calls them by other names.
    pub renames: ToolNameMap,
}

/// Compiles a request. Performs nothing; the same input gives the same bytes with any scratch.
///
/// # Errors
/// A [`Refusal`] where no payload can satisfy the post-condition.
pub fn compile(input: &CompileInput<'_>, scratch: &mut Scratch) -> Result<Compiled, Refusal> {
    let request = input.request;
    let limit = checked_input_limit(request)?;
    let press = Lowerer::new(request, input.counter, &mut scratch.memo);
    let target = format!("{}/{}/{limit}", request.dialect.format, request.model);
    let mut treatment = ViewPolicy::from_plan(input, &target);
    let mut step = Attempt::First;
    let mut begun = None;
    loop {
        Cancel::ensure_not_cancelled(input.cancel)?;
        // What a pass of the host's makes of a longer path cannot be told from a shorter one's.
        let own = input.passes.is_empty();
        let kept = scratch.take_prepared_history(|front| {
            own && front.is_reusable_for(&press, &treatment, input.path)
        });
        let kept = kept
            .and_then(|front| front.extend_with_new_items(input.path, &press, &mut scratch.memo));
        let front = match kept {
            Some(front) => front,
            None => PreparedHistory::build(input, &treatment, &press, &mut scratch.memo)?,
        };
        let call = AssemblyInput {
            input,
            limit,
            target: &target,
            prepared: &front,
            view_policy: &treatment,
            attempt: step,
            preview_decision: begun,
            lowerer: &press,
        };
        let outcome = assemble_request(&call, &mut scratch.memo);
        if own {
            scratch.store_prepared_history(front);
        }
        match outcome {
            Ok(AssemblyOutcome::Compiled(compiled)) => return Ok(*compiled),
            Ok(AssemblyOutcome::Preview(previews)) => {
                treatment.begin_previews();
                begun = Some(previews);
            }
            Ok(AssemblyOutcome::Clear(clearing)) => {
                let before = treatment.frontier;
                treatment.frontier = clearing.frontier.unwrap_or(before);
                step = Attempt::Cleared(clearing, before);
            }
            // Less can need more: without an old thought two rounds may be one.
            Err(refusal) => match (refusal, step) {
                (Refusal::DoesNotFit { .. }, Attempt::Cleared(_, before)) => {
                    treatment.frontier = before;
                    step = Attempt::AsBefore;
                }
                // The newest output may fit as a preview.
                (Refusal::DoesNotFit { .. }, Attempt::First)
                    if treatment.pending_previews().is_some() =>
                {
                    treatment.begin_previews();
                }
                (refusal, _) => return Err(refusal),
            },
        }
    }
}

/// One way through the back half.
struct AssemblyInput<'a> {
    input: &'a CompileInput<'a>,
    limit: u64,
    target: &'a str,
    prepared: &'a PreparedHistory,
    view_policy: &'a ViewPolicy,
    attempt: Attempt,
    /// Previews, if they begin with this compile.
    preview_decision: Option<PreviewDecision>,
    lowerer: &'a Lowerer<'a>,
}

impl AssemblyInput<'_> {
    /// What is at stake with the history as the plan shows it.
    fn rewrite_cost<'s>(
        &'s self,
        frame: &RequestOverhead,
        slots: &[PayloadSlot<'_>],
        placed: &[PlacedContribution],
        latched: &'s TrimPoint,
    ) -> RewriteCost<'s> {
        let around = SentContext::around_history(frame, slots, placed);
        let before = self.input.plan.prefix.as_ref();
        let same_prefix = before
            .is_some_and(|prefix| prefix.target == self.target && prefix.tools == frame.tools_hash);
        let before = PreviousRequest {
            same_prefix,
            payback_calls: self.remaining_payback_calls(),
        };
        RewriteCost::for_request(
            self.input,
            around,
            latched.sent_blocks(&self.prepared.history),
            before,
        )
    }

    /// Whether previews begin now; `None` if there is nothing to preview, or all of it is already.
    fn decide_previews(
        &self,
        frame: &RequestOverhead,
        slots: &[PayloadSlot<'_>],
        latched: &TrimPoint,
        size: HistorySize,
        stakes: &RewriteCost<'_>,
        memo: &mut Memo,
    ) -> Option<PreviewDecision> {
        let policy = self.view_policy.pending_previews()?;
        let mut change =
            preview_savings(policy, &self.prepared.history, latched, self.lowerer, memo)?;
        let request = self.input.request;
        if !has_read_tool(&request.tools) {
            let mut request = request.clone();
            request.tools.push(read_tool());
            let with = RequestOverhead::measure_request(&request, slots, self.lowerer, memo);
            change.tools = Some(with.tools + with.framing - frame.tools - frame.framing);
        }
        Some(PreviewDecision::decide(policy, size, stakes, change))
    }

    /// For how many calls the last rewriting for money's sake has not paid back yet.
    fn remaining_payback_calls(&self) -> u64 {
        let before = match &self.input.plan.prefix {
            Some(prefix) if prefix.target == self.target => self.input.plan.owes,
            _ => 0,
        };
        self.preview_decision
            .and_then(|previews| previews.payback_calls)
            .unwrap_or(before)
    }

    /// The same, after this call.
    fn payback_after_call(&self) -> u64 {
        let cleared = match self.attempt {
            Attempt::Cleared(clearing, _) => clearing.payback_calls,
            Attempt::First | Attempt::AsBefore => None,
        };
        cleared
            .unwrap_or(self.remaining_payback_calls())
            .saturating_sub(1)
    }
}

/// What the back half comes to.
enum AssemblyOutcome {
    Compiled(Box<Compiled>),
    /// Long outputs are to be previewed from now on.
    Preview(PreviewDecision),
    /// The history is too large, and old content can be cleared up to here.
    Clear(ClearDecision),
}

/// Whether this compile has moved the frontier of what is cleared.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    First,
    /// It has, from here.
    Cleared(ClearDecision, ClearFrontier),
    /// It had, and that did not fit.
    AsBefore,
}

/// The back half: from weighed rounds to the payload.
fn assemble_request(call: &AssemblyInput<'_>, memo: &mut Memo) -> Result<AssemblyOutcome, Refusal> {
    let AssemblyInput {
        input,
        limit,
        prepared: front,
        lowerer: press,
        ..
    } = *call;
    let request = input.request;
    let mut slots = arrange_slots(input.contributions);
    let mut whole: Vec<PlacedContribution> = slots
        .iter()
        .map(|slot| place_contribution(slot, unit_count(&slot.contribution.content), press, memo))
        .collect::<Result<_, _>>()?;
    let bridges = bridge_contributions(&front.history, request, &slots, &whole);
    for slot in bridges.iter().map(PayloadSlot::in_own_band) {
        let at = match slot.band {
            Band::Anchor => slots.partition_point(|other| other.band < Band::Anchor),
            _ => slots.len(),
        };
        whole.insert(at, place_contribution(&slot, 1, press, memo)?);
        slots.insert(at, slot);
    }
    let frame = RequestOverhead::measure_request(request, &slots, press, memo);
    Cancel::ensure_not_cancelled(input.cancel)?;

    let latched = TrimPoint::from_plan(input, call.target, &front.history, press, memo);
    let natural: Vec<u64> = whole.iter().map(|placed| placed.text.high).collect();
    let (placed, cut, worth) = match fit_to_budget(call, &slots, &frame, whole, latched, memo)? {
        FittedParts::Cut(placed, cut, worth) => (placed, cut, worth),
        FittedParts::Preview(previews) => return Ok(AssemblyOutcome::Preview(previews)),
        FittedParts::Clear(clearing) => return Ok(AssemblyOutcome::Clear(clearing)),
    };
    Cancel::ensure_not_cancelled(input.cancel)?;

    let (before, mut owners) = blocks_of_bands(&slots, &placed, |band| band <= Band::Anchor);
    let middle = cut.sent_blocks(&front.history);
    let (after, theirs) = blocks_of_bands(&slots, &placed, |band| band > Band::Anchor);
    owners.extend(std::iter::repeat_n(None, middle.len()));
    owners.extend(theirs);
    let envelope = frame.build_envelope(request, &slots, &placed)?;
    let pieces: Vec<&LoweredBlock> = [before.as_slice(), &middle, &after].concat();
    let head = payload_head(request, &frame, &slots, &placed);
    let history = &front.history;
    let mut payload = assemble_payload(head, &envelope, &before, (&cut, history), &after);
    let mut marked = apply_caching(&mut payload, input, call.target);
    marked.cache.rewriting = worth;

    let prefix = Prefix {
        target: call.target.to_owned(),
        tools: frame.tools_hash,
        system: RequestOverhead::system_hash(&placed),
        anchor: ContentHash::of(&concat_hashes(before.iter().map(|piece| &piece.key))),
    };
    let view = plan_decisions(call, &cut, marked.kept);
    Cancel::ensure_not_cancelled(input.cancel)?;
    let (plan, epoch) = input
        .plan
        .next_plan(prefix, middle.iter().map(|piece| &piece.key), view);
    let counted = counted_before_calibration(call, &slots, &placed, &middle, memo)?;
    let ledger = CompileOutcome {
        input,
        limit,
        prepared: front,
        slots: &slots,
        placed: &placed,
        natural: &natural,
        trimmed: cut.trimmed_sources(history),
        trim_point: &cut,
        sent_blocks: &middle,
        overhead: &frame,
        envelope: &envelope,
        counted,
    };
    let report = build_report(&ledger, epoch, marked.cache, &payload);
    let omitted: usize = report.omitted.iter().map(|omitted| omitted.items).sum();
    if report.totals.items <= omitted && !adds_messages(&slots, &placed, &bridges) {
        let format = request.dialect.format;
        return Err(Refusal::NothingToSay { format });
    }
    verify_payload(&VerifyInput {
        request,
        limit,
        tokens: report.totals.tokens,
        envelope: &envelope,
        blocks: &pieces,
        owners: &owners,
        sound: front.sound && cut.kept.iter().all(|kept| is_sound(&kept.blocks)),
        pinned: &ledger.pinned_texts(),
    })?;
    Ok(AssemblyOutcome::Compiled(Box::new(Compiled {
        payload,
        advice: Advice {
            compact: ledger.compact_advice(),
            cache: marked.advice,
        },
        report,
        plan,
        renames: ToolNameMap::for_tools(request.dialect.format, &request.tools),
    })))
}

/// What this compile decided, for the plan.
fn plan_decisions(
    call: &AssemblyInput<'_>,
    cut: &TrimPoint,
    kept: Vec<CachedPrefix>,
) -> PlanDecisions {
    PlanDecisions {
        kept,
        covers: call.view_policy.covers_hash(),
        clear: call.view_policy.clear_frontier(),
        cleared: matches!(call.attempt, Attempt::Cleared(..)),
        trim: cut.trim_frontier(&call.prepared.history, call.input),
        trimmed: cut.is_new,
        previews: call.view_policy.has_previews(),
        payback_calls: call.payback_after_call(),
        narrowing: call.input.request.narrowing,
        tools: call
            .input
            .request
            .offer
            .as_ref()
            .map(|offer| offer.latched.clone()),
    }
}

/// Whether contributions say something among the messages: placeholders alone are no request, however
/// legal.
fn adds_messages(
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
    bridges: &[Contribution],
) -> bool {
    slots.iter().zip(placed).any(|(slot, placed)| {
        let mut bridges = bridges.iter();
        let bridge = bridges.any(|one| std::ptr::eq(one, slot.contribution));
        !bridge && placed.blocks.iter().any(|piece| piece.element_count() > 0)
    })
}

/// What was counted of all that is sent, before it was narrowed; nothing where it was not.
fn counted_before_calibration(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
    history: &[&LoweredBlock],
    memo: &mut Memo,
) -> Result<Option<TokenBounds>, Refusal> {
    if call.input.request.narrowing.is_none() {
        return Ok(None);
    }
    let press = call.lowerer.without_calibration();
    let frame = RequestOverhead::measure_request(call.input.request, slots, &press, memo);
    let mut all = frame.tools + frame.framing;
    let sent = slots.iter().zip(placed);
    for (slot, placed) in sent.filter(|(_, placed)| placed.units > 0) {
        let plain = place_contribution(slot, placed.units, &press, memo)?;
        all += plain.text + plain.framing;
    }
    Ok(Some(all + history.iter().map(|piece| piece.counted).sum()))
}

/// What budgeting comes to.
enum FittedParts {
    Cut(Vec<PlacedContribution>, TrimPoint, Option<RewriteValue>),
    Preview(PreviewDecision),
    Clear(ClearDecision),
}

/// Fits the contributions into their grants and the history into what they leave.
fn fit_to_budget(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    frame: &RequestOverhead,
    whole: Vec<PlacedContribution>,
    latched: TrimPoint,
    memo: &mut Memo,
) -> Result<FittedParts, Refusal> {
    let (request, history) = (call.input.request, &call.prepared.history);
    let rounds: Vec<u64> = history.rounds.iter().map(|round| round.weight).collect();
    let kept = history.required_messages().into_iter();
    let singles: Vec<(usize, u64)> = kept.map(|kept| (kept.round, kept.weight())).collect();
    let policy = &request.history;
    let mut claim = HistoryBudgetRequest {
        rounds: &rounds,
        last: history.last,
        singles: &singles,
        frontier: latched.round,
        required_weight: latched.required_weight(),
        low_water: policy.trim.low_water,
        floor: 0,
        trims_to_low_water: false,
        window: None,
    };
    let claims: Vec<BudgetRequest> = slots.iter().zip(&whole).map(budget_request_of).collect();
    let granted = allocate_budget(
        call.limit,
        frame.weight(),
        &claims,
        required_history_weight(&claim),
    )
    .map_err(|_| {
        let segments = required_segments(history, slots, &whole, frame);
        Refusal::DoesNotFit {
            needed: segments.iter().map(|segment| segment.tokens).sum(),
            allowed: call.limit,
            window: request.window,
            reserve: request.reserve,
            segments,
        }
    })?;
    let mut placed: Vec<PlacedContribution> = Vec::with_capacity(whole.len());
    for ((slot, whole), grant) in slots.iter().zip(whole).zip(granted) {
        placed.push(fit_contribution(slot, whole, grant, call.lowerer, memo)?);
    }
    let taken: u64 = placed.iter().map(PlacedContribution::weight).sum();
    let mut room = call
        .limit
        .saturating_sub(frame.weight())
        .saturating_sub(taken);
    match policy.window {
        Window::Whole => {}
        Window::Turns(turns) => {
            claim.window = latched.window_start(turns, history, claim.low_water);
        }
        Window::Tokens(tokens) => room = room.min(tokens.max(required_history_weight(&claim))),
    }
    let stakes = call.rewrite_cost(frame, slots, &placed, &latched);
    claim.floor = stakes.minimum_cacheable_weight(room);
    let size = HistorySize {
        history: claim.planned_weight(),
        room,
        floor: claim.floor,
    };
    let worth = match call.attempt {
        Attempt::First => {
            let previews = call.decide_previews(frame, slots, &latched, size, &stakes, memo);
            if let Some(previews) = previews.filter(|previews| previews.begin) {
                return Ok(FittedParts::Preview(previews));
            }
            let current = &call.view_policy.frontier;
            let clearing = decide_clearing(
                call.input,
                history,
                current,
                size,
                &stakes,
                call.lowerer,
                memo,
            );
            if clearing.frontier.is_some() {
                return Ok(FittedParts::Clear(clearing));
            }
            let previews = call.preview_decision.or(previews);
            clearing
                .value
                .or(previews.and_then(|previews| previews.value))
        }
        Attempt::Cleared(clearing, _) => clearing.value,
        Attempt::AsBefore => None,
    };
    // Where clearing was needed and did not suffice, the history is cut in the same step, down to the
    // mark: else each of the next calls would clear a little more.
    claim.trims_to_low_water =
        matches!(call.attempt, Attempt::Cleared(clearing, _) if clearing.forced);
    let cut = latched.fit_to_room(room, &claim, history);
    Ok(FittedParts::Cut(placed, cut, worth))
}

fn budget_request_of((slot, whole): (&PayloadSlot<'_>, &PlacedContribution)) -> BudgetRequest {
    let budget = &slot.contribution.budget;
    BudgetRequest {
        required: slot.contribution.is_required(),
        natural: whole.weight(),
        min: budget.min,
        max: budget.max.unwrap_or(u64::MAX),
        share: budget.share,
    }
}

fn checked_input_limit(request: &CompileRequest) -> Result<u64, Refusal> {
    let format = request.dialect.format;
    if !Format::PROVIDERS.contains(&format) {
        return Err(Refusal::UnsupportedTarget { format });
    }
    let limit = request.window.saturating_sub(request.reserve);
    if limit == 0 {
        return Err(Refusal::WindowTooSmall {
            window: request.window,
            reserve: request.reserve,
        });
    }
    Ok(limit)
}

/// The pieces of the contributions to some bands, and whose they are.
fn blocks_of_bands<'a>(
    slots: &[PayloadSlot<'a>],
    placed: &'a [PlacedContribution],
    keep: impl Fn(Band) -> bool,
) -> (Vec<&'a LoweredBlock>, Vec<Option<&'a str>>) {
    slots
        .iter()
        .zip(placed)
        .filter(|(slot, _)| keep(slot.band))
        .flat_map(|(slot, placed)| {
            let owner = Some(slot.contribution.source.as_str());
            placed.blocks.iter().map(move |piece| (piece, owner))
        })
        .unzip()
}
