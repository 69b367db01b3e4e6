//! The passes in their order.
//!
//! `select` (what models may read) · `host` (passes of the host's, here and before repair) · `cover` (compactions in the place of what they stand for) ·
//! `clear` (old content as placeholders) · `thinking` (what may not be sent any more left out) · `repair` (what providers accept) · `lower` (blocks in the
//! target's format, weighed) · `budget` (who gets how much) · `place` (bands in order) · `verify` (the
//! post-condition).
//!
//! `repair` and `lower` come before `budget`, so that what is budgeted is what is sent, and an item's
//! bytes do not depend on where the history is cut. What is cleared is the plan's; only where the
//! history has grown too large is the frontier moved, and then the passes begin again, once.

use std::borrow::Cow;

use contexture_ir::Cancel;
use contexture_prompt_cache::AnsweredHistory;
use contexture_wire::{Format, Loss, ToolNameMap};

use crate::blocks::Lowerer;
use crate::contributions::RequestOverhead;
use crate::error::Refusal;
use crate::history::{PreparedHistory, TrimPoint, ViewPolicy};
use crate::input::{Advice, CompileInput, CompileRequest, Plan};
use crate::payload::Payload;
use crate::pipeline::attempt::{AssemblyInput, AssemblyOutcome, Attempt, assemble_request};
use crate::pipeline::scratch::{HistoryMemo, KnownHistory, Scratch};
use crate::standing_rules::{RuleChoice, RulesOnPath, show_rules};
use contexture_report::Report;

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
    pub tool_names: ToolNameMap,
}

/// Compiles a request. Performs nothing; the same input gives the same bytes with any scratch.
///
/// # Errors
/// A [`Refusal`] where no payload can satisfy the post-condition.
pub fn compile(input: &CompileInput<'_>, scratch: &mut Scratch) -> Result<Compiled, Refusal> {
    scratch.items_read = 0;
    match compile_history(input, Compactions::Shown, scratch) {
        // What stands for old history is never why new history does not fit: it is left out before that.
        Err(Refusal::DoesNotFit { .. }) if !input.covers.is_empty() => {
            compile_history(input, Compactions::LeftOut, scratch)
        }
        result => result,
    }
}

/// Whether what stands for old history is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compactions {
    Shown,
    LeftOut,
}

fn compile_history(
    input: &CompileInput<'_>,
    compactions: Compactions,
    scratch: &mut Scratch,
) -> Result<Compiled, Refusal> {
    let limit = checked_input_limit(input.request)?;
    let (request, tool_losses) = with_legal_tools(input.request, scratch)?;
    let request = &*request;
    let input = &CompileInput { request, ..*input };
    let lowerer = Lowerer::new(request, input.counter, input.cancel, &mut scratch.memo);
    // The limit is part of the target: frontiers that were found for one budget say nothing about
    // another.
    let target = format!("{}/{}/{limit}", request.target_name(), request.model);
    let mut view_policy = ViewPolicy::from_plan(input, &target);
    view_policy.leaves_out_compactions = compactions == Compactions::LeftOut;
    view_policy.edited_thinking = RequestOverhead::edited_thinking(request);
    let mut attempt = Attempt::First;
    let mut preview_decision = None;
    let (mut answered, mut trims_to_low_water) = (None, false);
    let mut chosen_rules: Option<RuleChoice> = None;
    // Ends: previews begin at most once, and the frontier moves at most once, as only a first attempt may move it. What
    // thinking is left out moves to the end of the path, and then only to an earlier edit. Rules are chosen a bounded number of times.
    loop {
        Cancel::check_optional(input.cancel)?;
        let KnownHistory { prepared, mut memo } =
            prepare_history(input, &view_policy, &lowerer, scratch)?;
        if request.bound_thinking && answered.is_none() {
            let history = &prepared.history;
            let planned =
                TrimPoint::from_plan(input, &target, history, &lowerer, &mut scratch.memo);
            let blocks = prepared.path_blocks(&planned);
            let compacted = view_policy.new_provider_compaction(input);
            let sent = input.plan.sent.as_ref();
            answered = Some(AnsweredHistory::compare(sent, &blocks, compacted));
        }
        let rules = RulesOnPath::read(input, &prepared.rules, &mut memo.rules, show_rules);
        let choice = chosen_rules.take();
        let choice = choice.unwrap_or_else(|| RuleChoice::latched(input, &rules));
        let call = AssemblyInput {
            input,
            limit,
            target: &target,
            prepared: &prepared,
            view_policy: &view_policy,
            attempt,
            preview_decision,
            answered: answered.as_ref(),
            trims_to_low_water,
            rules: &rules,
            rule_choice: &choice,
            lowerer: &lowerer,
            tool_losses: &tool_losses,
        };
        let outcome = assemble_request(&call, &mut scratch.memo, &mut memo);
        // Kept after a refusal too: the host is likely to try the same path again with a smaller request.
        if input.passes.is_empty() {
            scratch.store_history(KnownHistory { prepared, memo });
        }
        match outcome {
            Ok(AssemblyOutcome::Compiled(compiled)) => {
                Cancel::check_optional(input.cancel)?;
                return Ok(*compiled);
            }
            Ok(AssemblyOutcome::Preview(previews)) => {
                view_policy.begin_previews();
                preview_decision = Some(previews);
            }
            Ok(AssemblyOutcome::Clear(clearing)) => {
                let before = view_policy.frontier;
                view_policy.frontier = clearing.frontier.unwrap_or(before);
                attempt = Attempt::Cleared(clearing, before);
            }
            Ok(AssemblyOutcome::Edited(edit, is_cut)) => {
                view_policy.leave_out_thinking(edit, &input.path);
                trims_to_low_water |= is_cut;
            }
            Ok(AssemblyOutcome::Rules(next)) => {
                chosen_rules = Some(*next);
                continue;
            }
            Err(refusal) => attempt = attempt_after_refusal(refusal, attempt, &mut view_policy)?,
        }
        // What was chosen for one view is where the choice for the next one begins.
        chosen_rules = (choice.round > 0).then_some(choice);
    }
}

/// The request with tools that its target takes, and what was lost of them.
fn with_legal_tools<'r>(
    request: &'r CompileRequest,
    scratch: &mut Scratch,
) -> Result<(Cow<'r, CompileRequest>, Vec<Loss>), Refusal> {
    let format = request.dialect.format;
    match scratch.repair_tools(format, &request.tools, request.tool_limit)? {
        None => Ok((Cow::Borrowed(request), Vec::new())),
        Some((tools, losses)) => {
            let request = CompileRequest {
                tools,
                ..request.clone()
            };
            Ok((Cow::Owned(request), losses))
        }
    }
}

/// The history of the path: one of an earlier compile extended, or made anew.
fn prepare_history(
    input: &CompileInput<'_>,
    view_policy: &ViewPolicy,
    lowerer: &Lowerer<'_>,
    scratch: &mut Scratch,
) -> Result<KnownHistory, Refusal> {
    // What a pass of the host's makes of a longer path cannot be told from what it made of a shorter one, so with passes
    // nothing is reused.
    let reusable = input.passes.is_empty();
    let known = scratch.take_history(|prepared| {
        reusable && prepared.is_reusable_for(lowerer, view_policy, input.path)
    });
    let extended = known.and_then(|KnownHistory { prepared, memo }| {
        let prepared = prepared.extend_with_new_items(input.path, lowerer, &mut scratch.memo)?;
        Some(KnownHistory { prepared, memo })
    });
    let known = match extended {
        Some(known) => known,
        None => KnownHistory {
            prepared: PreparedHistory::build(input, view_policy, lowerer, &mut scratch.memo)?,
            memo: HistoryMemo::default(),
        },
    };
    scratch.items_read += known.prepared.items_read;
    // Of a cancelled history a part may be missing: it must neither be used nor kept.
    Cancel::check_optional(input.cancel)?;
    Ok(known)
}

/// The attempt that follows a refused one, if another can still fit.
///
/// # Errors
/// The refusal, if nothing is left to try.
fn attempt_after_refusal(
    refusal: Refusal,
    attempt: Attempt,
    view_policy: &mut ViewPolicy,
) -> Result<Attempt, Refusal> {
    match (&refusal, attempt) {
        // Less content can need more room: without an old thought two rounds may be one, and a round is never cut.
        (Refusal::DoesNotFit { .. }, Attempt::Cleared(_, before)) => {
            view_policy.frontier = before;
            Ok(Attempt::AsBefore)
        }
        // The newest output is required whole; as a preview it may fit.
        (Refusal::DoesNotFit { .. }, Attempt::First)
            if view_policy.pending_previews().is_some() =>
        {
            view_policy.begin_previews();
            Ok(attempt)
        }
        _ => Err(refusal),
    }
}

fn checked_input_limit(request: &CompileRequest) -> Result<u64, Refusal> {
    let format = request.dialect.format;
    if request.adapter.is_none() && !Format::PROVIDERS.contains(&format) {
        return Err(Refusal::UnsupportedTarget { format });
    }
    let limit = request.limit();
    // Reported apart from a request that is too large: the caller has to change the reserve, not the
    // request.
    if limit == 0 {
        return Err(Refusal::WindowTooSmall {
            window: request.window,
            reserve: request.reserve,
        });
    }
    Ok(limit)
}
