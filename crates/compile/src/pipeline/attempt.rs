//! One attempt at a request: contributions placed, the history fitted, the payload assembled, reported and verified.
//!
//! Not here: what a further attempt changes (`compile`), and who gets how many tokens (`fit`).

use contexture_ir::{Cancel, ContentHash, concat_hashes};
use contexture_prompt_cache::{AnsweredHistory, CacheAdvice, CacheReport, CachedPrefix, Prefix};
use contexture_tokens::TokenBounds;
use contexture_wire::{Issue, Loss, ToolNameMap};

use crate::blocks::{
    LoweredBlock, Lowerer, Memo, VerifyInput, is_sound, repair_row, verify_payload,
};
use crate::contributions::{
    PayloadSlot, PlacedContribution, RequestOverhead, arrange_slots, bridge_contributions,
    place_contribution, unit_count,
};
use crate::error::Refusal;
use crate::history::{BlockTotals, PreparedHistory, TrimPoint, TrimmedItems, ViewPolicy};
use crate::input::{Advice, Band, ClearFrontier, CompileInput, Contribution, Plan, PlanDecisions};
use crate::payload::{Payload, apply_caching, assemble_payload, payload_head};
use crate::pipeline::compile::Compiled;
use crate::pipeline::explain::build_report;
use crate::pipeline::fit::{FittedParts, fit_to_budget};
use crate::pipeline::outcome::CompileOutcome;
use crate::pipeline::scratch::HistoryMemo;
use crate::rewrite::{ClearDecision, PreviewDecision};
use crate::standing_rules::{RuleChoice, RulesOnPath};
use contexture_report::{EpochReport, Report};

/// What one attempt works on.
pub(crate) struct AssemblyInput<'a> {
    pub(crate) input: &'a CompileInput<'a>,
    pub(crate) limit: u64,
    pub(crate) target: &'a str,
    pub(crate) prepared: &'a PreparedHistory,
    pub(crate) view_policy: &'a ViewPolicy,
    pub(crate) attempt: Attempt,
    /// Previews, if they begin with this compile.
    pub(crate) preview_decision: Option<PreviewDecision>,
    /// What thinking was answered to, where the model binds it to that.
    pub(crate) answered: Option<&'a AnsweredHistory>,
    /// Whether the history was cut, and cutting it has taken thinking.
    pub(crate) trims_to_low_water: bool,
    /// The standing rules of the path, and those that this attempt shows.
    pub(crate) rules: &'a RulesOnPath,
    pub(crate) rule_choice: &'a RuleChoice,
    pub(crate) lowerer: &'a Lowerer<'a>,
    /// What repair changed in the tools.
    pub(crate) tool_losses: &'a [Loss],
}

impl AssemblyInput<'_> {
    /// For how many calls the last rewriting for money's sake has not paid back yet.
    pub(crate) fn remaining_payback_calls(&self) -> u64 {
        let before = match &self.input.plan.prefix {
            Some(prefix) if prefix.target == self.target => self.input.plan.payback_calls,
            _ => 0,
        };
        self.preview_decision
            .and_then(|previews| previews.payback_calls)
            .unwrap_or(before)
    }

    /// The number of calls that it has not paid back after this call.
    pub(crate) fn payback_after_call(&self) -> u64 {
        let cleared = match self.attempt {
            Attempt::Cleared(clearing, _) => clearing.payback_calls,
            Attempt::First | Attempt::AsBefore => None,
        };
        cleared
            .unwrap_or(self.remaining_payback_calls())
            .saturating_sub(1)
    }

    /// The edit behind which thinking would be sent, if there is one: of the history, or of what stands before it.
    fn find_thinking_edit(
        &self,
        trim: &TrimPoint,
        prefix: Option<&Prefix>,
    ) -> Option<AssemblyOutcome> {
        let answered = self.answered?;
        let before = self.input.plan.prefix.as_ref();
        let heads = before.zip(prefix);
        // Rules stand before all of the history.
        let rules = self.rule_choice.to_latched(self.input);
        let edited = heads.is_some_and(|(before, now)| {
            answered.is_head_edited(before, now) || rules.shown != self.input.plan.rules.shown
        });
        let shown = self.prepared.path_blocks(trim);
        let index = match edited || trim.is_new {
            true => 0,
            false => answered.first_edit(&shown, self.prepared.changes(trim))?,
        };
        let frontier = self.view_policy.thinking_from;
        let kept_out = |at| frontier.is_some_and(|frontier| frontier.leaves_out(at));
        let mut sent = self.thinking_indexes();
        let is_behind = sent.any(|at| at >= index && !kept_out(at));
        is_behind.then_some(AssemblyOutcome::Edited(index, trim.is_new))
    }

    /// The indexes on the path of the thinking that is shown.
    fn thinking_indexes(&self) -> impl Iterator<Item = usize> {
        let format = self.lowerer.dialect().format;
        let thinking = self.prepared.history.signed_thinking(format);
        thinking.filter_map(|(_, entry)| entry.source)
    }

    /// Whether thinking is shown that the plan leaves out.
    fn shows_edited_thinking(&self) -> bool {
        let frontier = self.view_policy.thinking_from;
        let frontier = frontier.filter(|_| self.view_policy.edited_thinking.is_some());
        frontier.is_some_and(|frontier| self.thinking_indexes().any(|at| frontier.leaves_out(at)))
    }
}

/// The result of one attempt: a request, or a rewriting of the history that has to come first.
pub(crate) enum AssemblyOutcome {
    Compiled(Box<Compiled>),
    /// Long outputs are to be previewed from now on.
    Preview(PreviewDecision),
    /// The history is too large, and old content can be cleared up to here.
    Clear(ClearDecision),
    /// Other rules have to be shown.
    Rules(Box<RuleChoice>),
    /// Thinking behind an edit has to be left out: its index on the path, and whether the history was cut.
    Edited(usize, bool),
}

/// Whether this compile has moved the frontier of what is cleared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attempt {
    First,
    /// It has, from here.
    Cleared(ClearDecision, ClearFrontier),
    /// It had, and that did not fit.
    AsBefore,
}

/// The back half: from weighed rounds to the payload.
pub(crate) fn assemble_request(
    call: &AssemblyInput<'_>,
    memo: &mut Memo,
    known: &mut HistoryMemo,
) -> Result<AssemblyOutcome, Refusal> {
    let AssemblyInput {
        input,
        prepared,
        lowerer,
        ..
    } = *call;
    let (request, history) = (input.request, &prepared.history);
    let mut slots = arrange_with_rules(call, history.ends_with_user());
    let mut full = slots
        .iter()
        .map(|slot| place_contribution(slot, unit_count(&slot.contribution.content), lowerer, memo))
        .collect::<Result<Vec<_>, _>>()?;
    let bridges = bridge_contributions(history, lowerer.repair_rules(), &slots, &full);
    insert_bridges(&bridges, &mut slots, &mut full, lowerer, memo)?;
    let overhead = RequestOverhead::measure_request(request, &slots, lowerer, memo);
    Cancel::check_optional(input.cancel)?;

    let planned = TrimPoint::from_plan(input, call.target, history, lowerer, memo);
    if let Some(edited) = call.find_thinking_edit(&planned, None) {
        return Ok(edited);
    }
    // Kept for the report: how much of each contribution was left out.
    let natural: Vec<u64> = full.iter().map(|placed| placed.text.high).collect();
    let fitted = fit_to_budget(call, &slots, &overhead, (full, planned), (memo, known))?;
    let (placed, trim, value) = match fitted {
        FittedParts::Cut(placed, trim, value) => (placed, trim, value),
        FittedParts::Preview(previews) => return Ok(AssemblyOutcome::Preview(previews)),
        FittedParts::Clear(clearing) => return Ok(AssemblyOutcome::Clear(clearing)),
    };
    Cancel::check_optional(input.cancel)?;

    let before = blocks_of_bands(&slots, &placed, |band| band <= Band::Anchor);
    let after = blocks_of_bands(&slots, &placed, |band| band > Band::Anchor);
    let sent = trim.sent_blocks(history);
    sent.follow_hashes(&mut known.sent);
    // Rules are no anchor: that they change has reasons of its own.
    let (anchor, rule_blocks) =
        before.split_at(before.len() - rule_block_count(call, &slots, &placed));
    let prefix = sent_prefix(call.target, &overhead, &placed, anchor);
    if let Some(edited) = call.find_thinking_edit(&trim, Some(&prefix)) {
        return Ok(edited);
    }
    let refuses = prepared.refuses_thinking;
    let envelope = RequestOverhead::build_envelope(request, refuses, &slots, &placed)?;
    let head = payload_head(request, &overhead, &slots, &placed);
    let own = |pieces: &[(_, _)]| pieces.iter().map(|(piece, _)| *piece).collect::<Vec<_>>();
    let around = [own(&before), own(&after)];
    let mut payload = assemble_payload(head, &envelope, &around, (&trim, history));
    // Markers go on the finished payload; what is shared with other payloads stays without them.
    let shared = (&history.frozen, &mut known.outline);
    let mut marked = apply_caching(&mut payload, input, call.target, shared);
    marked.cache.rewriting = value;
    if let Some(adapter) = &request.adapter {
        payload.rewrite_with(adapter)?;
    }

    // Words behind the history are gone in the next call: the thinking of their answer is bound to more than the newest block.
    let is_last = after.iter().all(|(block, _)| block.element_count() == 0);
    let newest = sent.iter().next_back();
    let newest = newest.filter(|_| request.bound_thinking && is_last);
    let decisions = plan_decisions(call, &trim, marked.kept, newest.map(|block| block.key));
    Cancel::check_optional(input.cancel)?;
    let hash_of_first = |count| sent.prefix_hash(&known.sent, count);
    let blocks = (sent.len(), &hash_of_first as &dyn Fn(usize) -> ContentHash);
    let (plan, epoch) = input.plan.next_plan(prefix, blocks, decisions);
    let is_placed = call.rule_choice.contribution.is_none() || !rule_blocks.is_empty();
    let trimmed = trim.trimmed_items(history, &mut known.trimmed);
    if let Some(choice) = next_rule_choice(call, &trimmed, (epoch.opened, is_placed), memo) {
        return Ok(AssemblyOutcome::Rules(Box::new(choice)));
    }
    let outcome = CompileOutcome {
        input,
        limit: call.limit,
        prepared,
        slots: &slots,
        placed: &placed,
        natural: &natural,
        trimmed,
        trim_point: &trim,
        sent_blocks: sent,
        sent_totals: sent.totals(),
        overhead: &overhead,
        envelope: &envelope,
        tool_losses: call.tool_losses,
        rule_choice: call.rule_choice,
        counted: counted_before_calibration(call, &slots, &placed, sent.totals(), memo)?,
        upper: upper_bound(call, &slots, &placed, sent.totals(), memo)?,
    };
    ensure_something_said(&outcome, &bridges)?;
    let marked = (payload, marked.cache, marked.advice, marked.segments);
    let compiled = report_compiled(call, &outcome, (plan, epoch), marked, [&before, &after])?;
    Ok(AssemblyOutcome::Compiled(Box::new(compiled)))
}

/// Draws up the report of a payload, and checks what it promises.
fn report_compiled(
    call: &AssemblyInput<'_>,
    outcome: &CompileOutcome<'_>,
    (plan, epoch): (Plan, EpochReport),
    (payload, cache, advice, segments): (Payload, CacheReport, Option<CacheAdvice>, ContentHash),
    around: [&[(&LoweredBlock, &str)]; 2],
) -> Result<Compiled, Refusal> {
    // Before verification, as its sum of tokens is what is verified.
    let fingerprint = payload.fingerprint_of(segments);
    let report = build_report(outcome, epoch, cache, (&payload, fingerprint));
    verify_outcome(call, outcome, &report, around)?;
    let request = outcome.input.request;
    Ok(Compiled {
        payload,
        advice: Advice {
            compact: outcome.compact_advice(),
            cache: advice,
        },
        report,
        plan,
        tool_names: ToolNameMap::for_tools(request.dialect.format, &request.tools),
    })
}

/// The contributions in their order, with the rules between what stands before the history and the history.
fn arrange_with_rules<'c>(call: &AssemblyInput<'c>, ends_with_user: bool) -> Vec<PayloadSlot<'c>> {
    let mut slots = arrange_slots(call.input.contributions, ends_with_user);
    if let Some(contribution) = &call.rule_choice.contribution {
        let at = slots.partition_point(|slot| slot.band <= Band::Anchor);
        slots.insert(at, PayloadSlot::in_own_band(contribution));
    }
    slots
}

/// How many blocks the rules take, behind the others that stand before the history.
fn rule_block_count(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
) -> usize {
    let Some(contribution) = &call.rule_choice.contribution else {
        return 0;
    };
    let mut both = slots.iter().zip(placed);
    let own = both.find(|(slot, _)| std::ptr::eq(slot.contribution, contribution));
    own.map_or(0, |(_, placed)| placed.blocks.len())
}

/// Other rules than those that were shown, if what is in view demands them.
fn next_rule_choice(
    call: &AssemblyInput<'_>,
    trimmed: &TrimmedItems,
    given: (bool, bool),
    memo: &mut Memo,
) -> Option<RuleChoice> {
    // Nearly all histories have no rules: they cost nothing here.
    if call.rules.has_none() {
        return None;
    }
    let in_view = |index: usize| call.prepared.shows(index, trimmed);
    let rules = (call.rules, &call.prepared.rules);
    let counting = (call.lowerer, memo);
    call.rule_choice
        .next_choice(call.input, rules, given, &in_view, counting)
}

/// Puts the opening and closing words where they stand in the order of the payload.
fn insert_bridges<'b>(
    bridges: &'b [Contribution],
    slots: &mut Vec<PayloadSlot<'b>>,
    full: &mut Vec<PlacedContribution>,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Result<(), Refusal> {
    for slot in bridges.iter().map(PayloadSlot::in_own_band) {
        // The opening comes before all that stands before the history, the closing after everything.
        let at = match slot.band {
            Band::Anchor => slots.partition_point(|other| other.band < Band::Anchor),
            _ => slots.len(),
        };
        let mut placed = place_contribution(&slot, 1, lowerer, memo)?;
        let issue = match slot.band {
            Band::Anchor => Issue::no_beginning(),
            _ => Issue::no_end(0),
        };
        // It concerns no item of the path.
        placed.repairs.push(repair_row(issue, None));
        full.insert(at, placed);
        slots.insert(at, slot);
    }
    Ok(())
}

/// What stands before the history, as the next compile recognises it.
fn sent_prefix(
    target: &str,
    overhead: &RequestOverhead,
    placed: &[PlacedContribution],
    before: &[(&LoweredBlock, &str)],
) -> Prefix {
    Prefix {
        target: target.to_owned(),
        tools: overhead.tools_hash,
        system: RequestOverhead::system_hash(placed),
        anchor: ContentHash::of(&concat_hashes(before.iter().map(|(block, _)| &block.key))),
    }
}

/// Refuses a request of which nothing but placeholders is left.
fn ensure_something_said(
    outcome: &CompileOutcome<'_>,
    bridges: &[Contribution],
) -> Result<(), Refusal> {
    let items = outcome.input.path.len();
    if items > outcome.omitted_count() || adds_messages(outcome.slots, outcome.placed, bridges) {
        return Ok(());
    }
    let target = outcome.input.request.target_name().to_owned();
    Err(Refusal::NothingToSay { target })
}

/// Checks the post-condition on what will be sent.
fn verify_outcome(
    call: &AssemblyInput<'_>,
    outcome: &CompileOutcome<'_>,
    report: &Report,
    [before, after]: [&[(&LoweredBlock, &str)]; 2],
) -> Result<(), Refusal> {
    let required = &outcome.trim_point.kept;
    let kept: Vec<&LoweredBlock> = outcome.sent_blocks.kept().collect();
    verify_payload(&VerifyInput {
        request: outcome.input.request,
        rules: call.lowerer.repair_rules(),
        limit: outcome.limit,
        tokens: report.totals.tokens,
        envelope: outcome.envelope,
        before,
        kept: &kept,
        history: outcome.sent_blocks.rest(),
        after,
        sound: outcome.prepared.sound && required.iter().all(|kept| is_sound(&kept.blocks)),
        edited_thinking: call.shows_edited_thinking(),
        pinned: &outcome.pinned_texts(),
    })
}

/// What this compile decided, for the plan.
fn plan_decisions(
    call: &AssemblyInput<'_>,
    trim: &TrimPoint,
    kept: Vec<CachedPrefix>,
    newest: Option<ContentHash>,
) -> PlanDecisions {
    PlanDecisions {
        kept,
        newest,
        thinking_from: call.view_policy.thinking_from,
        covers: call.view_policy.covers_hash(),
        clear: call.view_policy.clear_frontier(),
        // Tells the plan why the cached prefix ends here.
        cleared: matches!(call.attempt, Attempt::Cleared(..)),
        trim: trim.trim_frontier(&call.prepared.history, call.input),
        trimmed: trim.is_new,
        previews: call.view_policy.has_previews(),
        payback_calls: call.payback_after_call(),
        rules: call.rule_choice.to_latched(call.input),
        narrowing: call.input.request.calibrated_range,
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
        // Words that only open or close the conversation are no content.
        let bridge = bridges.any(|one| std::ptr::eq(one, slot.contribution));
        !bridge && placed.blocks.iter().any(|piece| piece.element_count() > 0)
    })
}

/// What was counted of all that is sent, before it was narrowed; nothing where it was not.
fn counted_before_calibration(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
    history: BlockTotals,
    memo: &mut Memo,
) -> Result<Option<TokenBounds>, Refusal> {
    // Without calibration the counts of the report are the original ones already.
    if call.input.request.budgeted_range().is_none() {
        return Ok(None);
    }
    // Learning from narrowed counts would narrow them further with every report, until they are wrong.
    let lowerer = call.lowerer.without_calibration();
    let around = count_around_history(call, slots, placed, &lowerer, memo)?;
    Ok(Some(around + history.counted))
}

/// The most that all that is sent can have; nothing where that is what was budgeted.
fn upper_bound(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
    history: BlockTotals,
    memo: &mut Memo,
) -> Result<Option<u64>, Refusal> {
    if !call.lowerer.budgets_below_upper() {
        return Ok(None);
    }
    let lowerer = call.lowerer.by_upper_bound();
    let around = count_around_history(call, slots, placed, &lowerer, memo)?.high;
    Ok(Some(around.saturating_add(history.upper)))
}

/// What is sent beside the history, counted in another way than it was budgeted.
fn count_around_history(
    call: &AssemblyInput<'_>,
    slots: &[PayloadSlot<'_>],
    placed: &[PlacedContribution],
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Result<TokenBounds, Refusal> {
    let frame = RequestOverhead::measure_request(call.input.request, slots, lowerer, memo);
    let mut all = frame.tools + frame.framing;
    let sent = slots.iter().zip(placed);
    for (slot, placed) in sent.filter(|(_, placed)| placed.units > 0) {
        let plain = place_contribution(slot, placed.units, lowerer, memo)?;
        all += plain.text + plain.framing;
    }
    Ok(all)
}

/// The pieces of the contributions to some bands, and whose they are.
fn blocks_of_bands<'a>(
    slots: &[PayloadSlot<'a>],
    placed: &'a [PlacedContribution],
    keep: impl Fn(Band) -> bool,
) -> Vec<(&'a LoweredBlock, &'a str)> {
    slots
        .iter()
        .zip(placed)
        .filter(|(slot, _)| keep(slot.band))
        .flat_map(|(slot, placed)| {
            let owner = slot.contribution.source.as_str();
            placed.blocks.iter().map(move |piece| (piece, owner))
        })
        .collect()
}
