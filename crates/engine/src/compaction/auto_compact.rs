//! Compiling a call, compacting the history first where it has grown too large.

use std::sync::Arc;

use contexture_catalogue::{Catalogue, CatalogueError};
use contexture_compile::{CompileRequest, OmitReason, Omitted, Report, Target};
use contexture_ir::NodeId;
use contexture_tokens::counter_for;
use futures_util::future::BoxFuture;

use super::background::{
    BackgroundSummary, LookupSizes, SentBody, SentRequest, SummaryLookup, SummaryPlan,
    find_ready_summary, remove_summary, start_summary,
};
use super::branch_snapshot::load_snapshot;
use super::compact::{
    CompactOptions, CompactSpan, Compacted, CompactionCause, RoomGoal, compact_with_cause,
};
use super::compactor::GivenSummary;
use super::notice::{NewContextWish, NoticePolicy, compile_with_notice, find_new_context};
use super::reported_usage::last_reported_usage;
use super::strategy::Strategy;
use super::trigger::{
    ReportedUsage, Trigger, UsagePreference, percent_of, should_compact, trigger_size, usage_scale,
};
use crate::call::{CompileOptions, CompiledCall, compile_call};
use crate::error::EngineError;
use crate::handle::{Conversation, EngineEventKind, read_full_path};
use crate::path::StoredPath;

/// A summary in the background is begun at the latest when the history has this share of the size that triggers a
/// compaction, in per cent.
const LATEST_PERCENT: u8 = 82;

/// When and how a call is compacted before it is sent.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// The size above which the history is compacted.
    pub trigger: Trigger,
    /// Which token figure decides when both are known.
    pub usage: UsagePreference,
    /// What the provider said of the last call. Default: what was stored with its answer, if
    /// [`Conversation::record`] stored it on this branch and it was a call of the same model.
    pub reported: Option<ReportedUsage>,
    /// When the model is told of a compaction to come, so that it can save what must not be lost. Default: at 80 per cent of
    /// the trigger, where the call offers a tool for it. `None`: never.
    pub notice: Option<NoticePolicy>,
    /// Options for each compaction.
    pub compact: CompactOptions,
    /// What is done about a history that has grown too large, tried in this order. Default: the manifest.
    pub strategies: Vec<Strategy>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self {
            trigger: Trigger::default(),
            usage: UsagePreference::default(),
            reported: None,
            notice: Some(NoticePolicy::default()),
            compact: CompactOptions::default(),
            strategies: vec![Strategy::Manifest],
        }
    }
}

impl PrepareOptions {
    /// Whether summaries are to be written in the background.
    #[must_use]
    pub fn wants_summaries(&self) -> bool {
        let mut strategies = self.strategies.iter();
        strategies.any(|strategy| matches!(strategy, Strategy::Summary(_)))
    }

    /// Whether a request of this report is large enough for a summary to be asked for behind its answer. False for a model that is
    /// not known.
    #[must_use]
    pub fn is_summary_due(&self, catalogue: &Catalogue, target: &Target, report: &Report) -> bool {
        let sizes = TriggerSizes::for_target(catalogue, target, self.trigger);
        sizes.is_ok_and(|sizes| wanted_summary(report, target, self, sizes).is_some())
    }
}

/// A compiled call, and what was compacted for it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The call that was compiled.
    pub call: CompiledCall,
    /// What was compacted: one span at most, mostly nothing.
    pub compacted: Vec<Compacted>,
    /// Why nothing was compacted although it was due; the call's report and an event say it too.
    pub declined: Option<&'static str>,
}

impl Prepared {
    const fn unchanged(call: CompiledCall) -> Self {
        Self {
            call,
            compacted: Vec::new(),
            declined: None,
        }
    }
}

/// Compiles a call, with options for the compile, and compacts the history first if that is due, or if the model asked for it
/// by `new_context`: once, as far as it has to be. A second time would be about the same items.
pub(crate) async fn prepare_call(
    chat: &Conversation,
    target: &Target,
    options: &PrepareOptions,
    compile: CompileOptions<'_>,
) -> Result<Prepared, EngineError> {
    let request = target.build_request(chat.engine().catalogue())?;
    let path = read_full_path(chat, chat.current_position()).await?;
    // What the caller knows wins; the store is asked only where the figure is used.
    let reported = match (options.reported, options.usage) {
        (None, UsagePreference::Max | UsagePreference::ReportedFirst) => {
            last_reported_usage(chat, &path, &request.model).await?
        }
        (given, _) => given,
    };
    // A model's own wish, before the size asks for it.
    let wish = find_new_context(&path);
    let is_redacted = has_redacted_compaction(chat, &path).await?;
    // Let go before anything is appended: a path that somebody holds is copied to grow.
    drop(path);
    let scale = usage_scale(reported, options.usage);
    let sizes = TriggerSizes::of_request(&request, options.trigger, scale);
    let compiled = begin_compile(chat, target, compile).await;
    // A refused compile is due as well: compacting may be what makes it fit. Other errors are not about size.
    let is_due = match &compiled {
        Ok(call) => {
            let counted = call.report.totals.tokens;
            call.advice.compact.is_some()
                || should_compact(options.trigger, counted, sizes.space, scale)
        }
        Err(EngineError::Refused(_)) => true,
        Err(_) => false,
    };
    if !is_due && !is_redacted && wish.is_none() {
        return finish_undue_call(chat, target, (options, compile), compiled?, sizes).await;
    }
    let due = DueCompaction {
        chat,
        target,
        options,
        compiled: compiled.as_ref().ok(),
        sizes,
        is_forced: is_redacted || wish.is_some(),
    };
    let (outcome, summary_missing) = due.begin_strategies(wish).await?;
    match outcome {
        StrategyOutcome::Compacted(one) => {
            let mut call = begin_compile(chat, target, compile).await?;
            call.report.summary_missing = summary_missing;
            Ok(Prepared {
                compacted: vec![*one],
                ..Prepared::unchanged(call)
            })
        }
        // Another did it: its compaction is as good.
        StrategyOutcome::MadeByOther => {
            let call = begin_compile(chat, target, compile).await?;
            Ok(Prepared::unchanged(call))
        }
        StrategyOutcome::LeftToProvider => Ok(Prepared::unchanged(compiled?)),
        // As good as it gets: the caller gets the call, or the refusal, of the compile.
        StrategyOutcome::Declined(reason) => {
            chat.publish(|| EngineEventKind::CompactionDeclined { reason });
            let mut call = compiled?;
            call.report.compaction_declined = Some(reason);
            call.report.summary_missing = summary_missing;
            Ok(Prepared {
                declined: Some(reason),
                ..Prepared::unchanged(call)
            })
        }
    }
}

/// Begins to compile. Boxed in a function of its own: it is awaited deep within nested runs of agents, where an unoptimised
/// program would keep room for it on each stack frame.
fn begin_compile<'a>(
    chat: &'a Conversation,
    target: &'a Target,
    compile: CompileOptions<'a>,
) -> BoxFuture<'a, Result<CompiledCall, EngineError>> {
    Box::pin(compile_call(chat, target.into(), compile))
}

/// Adds to a call that needs no compaction what the model is told of one to come, and the summary that is begun behind its answer.
async fn finish_undue_call(
    chat: &Conversation,
    target: &Target,
    (options, compile): (&PrepareOptions, CompileOptions<'_>),
    call: CompiledCall,
    sizes: TriggerSizes,
) -> Result<Prepared, EngineError> {
    let trigger = sizes.trigger;
    let told = match &options.notice {
        Some(notice) => {
            compile_with_notice(chat, target, (&call, compile), (notice, trigger)).await?
        }
        None => None,
    };
    let mut call = told.unwrap_or(call);
    if let Some(wanted) = wanted_summary(&call.report, target, options, sizes) {
        let cause = cause_of(Some(&call), trigger);
        let counted = (call.report.totals.tokens, sizes);
        let plan = plan_summary(wanted, target, options, cause, counted);
        call.after_answer = Some(Arc::new(plan));
    }
    Ok(Prepared::unchanged(call))
}

/// A compaction that is due, and the call that it is due for.
struct DueCompaction<'a> {
    chat: &'a Conversation,
    target: &'a Target,
    options: &'a PrepareOptions,
    /// The call as it is; `None` if it was refused.
    compiled: Option<&'a CompiledCall>,
    sizes: TriggerSizes,
    /// Whether it is made whatever the size: the model asked for it, or a compaction in effect was redacted. Then neither the
    /// provider nor a summary of another span will do.
    is_forced: bool,
}

/// What the strategies came to.
enum StrategyOutcome {
    Compacted(Box<Compacted>),
    MadeByOther,
    /// The request fits, and its provider shortens it.
    LeftToProvider,
    /// Why nothing was compacted.
    Declined(&'static str),
}

impl DueCompaction<'_> {
    /// Begins to try the strategies; boxed as [`begin_compile`] is.
    fn begin_strategies(
        &self,
        wish: Option<NewContextWish>,
    ) -> BoxFuture<'_, Result<(StrategyOutcome, Option<String>), EngineError>> {
        Box::pin(self.run_strategies(wish))
    }

    /// Tries the strategies in their order. Returns why no summary of a model stands for old history, too, if one was wanted.
    async fn run_strategies(
        &self,
        wish: Option<NewContextWish>,
    ) -> Result<(StrategyOutcome, Option<String>), EngineError> {
        let mut declined = "no strategy makes room";
        let mut summary_missing = None;
        let is_wished = wish.is_some();
        let base = self.compact_options(wish.and_then(|wish| wish.summary));
        for strategy in &self.options.strategies {
            let mut how = base.clone();
            let mut cause = cause_of(self.compiled, self.sizes.trigger);
            let mut key = None;
            match strategy {
                Strategy::Manifest => {}
                Strategy::Summary(_) | Strategy::Provider if self.is_forced => continue,
                Strategy::Summary(_) => match self.find_summary(&how, &cause).await? {
                    SummaryLookup::Usable {
                        first,
                        last,
                        compactor,
                        key: found,
                    } => {
                        how.span = CompactSpan::Nodes { first, last };
                        how.compactor = Arc::new(compactor);
                        key = Some(found);
                    }
                    SummaryLookup::Missing(why) => {
                        summary_missing =
                            Some(why.unwrap_or_else(|| "none was ready in time".to_owned()));
                        continue;
                    }
                },
                Strategy::Provider if self.fits() => {
                    return Ok((StrategyOutcome::LeftToProvider, summary_missing));
                }
                Strategy::Provider => continue,
                Strategy::Reset => cause.room = Some(RoomGoal::default()),
            }
            // What the model wants to go on from stands before the manifest, and only its last round behind that.
            if is_wished {
                cause.room = Some(RoomGoal::default());
            }
            match compact_with_cause(self.chat, self.target, &how, &cause).await {
                Ok(one) => {
                    // It stands in the compaction now.
                    if let Some(key) = key {
                        summary_missing = None;
                        remove_summary(self.chat, key).await?;
                    }
                    let made = StrategyOutcome::Compacted(Box::new(one));
                    return Ok((made, summary_missing));
                }
                Err(EngineError::Store(contexture_store::Error::StateConflict { .. })) => {
                    return Ok((StrategyOutcome::MadeByOther, None));
                }
                Err(EngineError::NothingToCompact { reason }) => declined = reason,
                Err(error) => return Err(error),
            }
        }
        Ok((StrategyOutcome::Declined(declined), summary_missing))
    }

    /// The options of a compaction before a call, with what the model itself wants to go on from.
    fn compact_options(&self, summary: Option<String>) -> CompactOptions {
        let mut how = self.options.compact.clone();
        // A span of fixed nodes can be compacted once only; every call needs one of its own.
        how.span = CompactSpan::Older;
        how.retained_percent = scaled_percent(how.retained_percent, self.sizes.scale);
        if let Some(summary) = summary.and_then(GivenSummary::new) {
            how.compactor = Arc::new(summary);
        }
        how
    }

    /// Whether the request can be sent as it is, whole.
    fn fits(&self) -> bool {
        let compact = self.compiled.map(|call| call.advice.compact);
        compact.is_some_and(|advice| advice.is_none())
    }

    /// Finds a summary that was written before, as far as it makes room enough.
    async fn find_summary(
        &self,
        how: &CompactOptions,
        cause: &CompactionCause,
    ) -> Result<SummaryLookup, EngineError> {
        let snapshot = load_snapshot(self.chat, self.chat.current_position()).await?;
        let spec = self.target.model_spec(self.chat.engine().catalogue())?;
        let format = self.target.format();
        let shown = snapshot.positions_in_view(format);
        let weights = snapshot.token_weights(&shown, counter_for(spec.encoding));
        let sizes = LookupSizes {
            format,
            weights: &weights,
            most: percent_of(self.sizes.space, how.retained_percent),
            advice: cause.advice,
        };
        find_ready_summary(self.chat, &snapshot, sizes).await
    }
}

/// A share of the space in our tokens: what the provider counts more than we do leaves so much less of it.
fn scaled_percent(percent: u8, scale: u64) -> u8 {
    u8::try_from(u64::from(percent) * 1_000 / scale.max(1_000)).unwrap_or(percent)
}

/// The sizes by which it is decided when something is made, in our tokens.
#[derive(Clone, Copy, Debug)]
struct TriggerSizes {
    /// The space of a request.
    space: u64,
    /// What the provider counts more than we do, in thousandths.
    scale: u64,
    /// Above which size a compaction is due.
    trigger: u64,
}

impl TriggerSizes {
    /// Of requests to a target, by our counts alone.
    fn for_target(
        catalogue: &Catalogue,
        target: &Target,
        trigger: Trigger,
    ) -> Result<Self, CatalogueError> {
        let request = target.build_request(catalogue)?;
        Ok(Self::of_request(&request, trigger, 1_000))
    }

    fn of_request(request: &CompileRequest, trigger: Trigger, scale: u64) -> Self {
        let space = request.limit();
        Self {
            space,
            scale,
            trigger: trigger_size(trigger, space, scale),
        }
    }
}

/// Returns the summary that is to be made in the background once a call is answered; `None` where none is wanted, where it is
/// too early, and where the model does not see all that it would sum up.
fn wanted_summary<'o>(
    report: &Report,
    target: &Target,
    options: &'o PrepareOptions,
    sizes: TriggerSizes,
) -> Option<&'o BackgroundSummary> {
    let mut strategies = options.strategies.iter();
    let wanted = strategies.find_map(|strategy| match strategy {
        Strategy::Summary(wanted) => Some(wanted),
        _ => None,
    });
    let wanted = wanted.filter(|_| target.adapter().is_none())?;
    let from = Trigger::Share(wanted.from_percent);
    let from = trigger_size(from, sizes.space, sizes.scale);
    // Always before the compaction, however early that is.
    let from = from.min(percent_of(sizes.trigger, LATEST_PERCENT));
    let is_left_out = |one: &Omitted| one.reason == OmitReason::Trimmed;
    let is_whole = !report.omitted.iter().any(is_left_out);
    (is_whole && report.totals.tokens >= from).then_some(wanted)
}

fn plan_summary(
    wanted: &BackgroundSummary,
    target: &Target,
    options: &PrepareOptions,
    cause: CompactionCause,
    (counted, sizes): (u64, TriggerSizes),
) -> SummaryPlan {
    let mut compact = options.compact.clone();
    compact.retained_percent = scaled_percent(compact.retained_percent, sizes.scale);
    SummaryPlan {
        strategy: wanted.clone(),
        compact,
        target: target.clone(),
        cause: CompactionCause {
            growth: sizes.trigger.saturating_sub(counted),
            ..cause
        },
    }
}

/// A request that was sent as a client wrote it, and was answered; see
/// [`Conversation::summarise_behind`](crate::Conversation::summarise_behind).
#[derive(Debug)]
pub struct AnsweredRequest<'a> {
    /// The request's body, as it was sent.
    pub body: String,
    /// The last node of its history.
    pub head: NodeId,
    /// The model that was asked, and how large its window is taken to be.
    pub target: &'a Target,
    /// What was counted of the request.
    pub report: &'a Report,
    /// How compactions of the conversation are made.
    pub options: &'a PrepareOptions,
}

/// Begins a summary in the background behind a request that was sent as a client wrote it, where one is wanted and due.
pub(crate) fn summarise_behind(
    chat: &Conversation,
    answered: AnsweredRequest<'_>,
) -> Result<(), EngineError> {
    let AnsweredRequest {
        target,
        report,
        options,
        ..
    } = answered;
    let sizes = TriggerSizes::for_target(chat.engine().catalogue(), target, options.trigger)?;
    if let Some(wanted) = wanted_summary(report, target, options, sizes) {
        let cause = CompactionCause {
            room: Some(room_goal(report, sizes.trigger)),
            ..CompactionCause::default()
        };
        let sent = SentRequest {
            head: answered.head,
            body: SentBody::Text(answered.body),
        };
        let counted = (report.totals.tokens, sizes);
        start_summary(
            chat,
            sent,
            plan_summary(wanted, target, options, cause, counted),
        );
    }
    Ok(())
}

/// Whether a compaction in effect was redacted: it is made anew, without what was redacted in it.
async fn has_redacted_compaction(
    chat: &Conversation,
    path: &StoredPath,
) -> Result<bool, EngineError> {
    if !path.has_redacted_compaction() {
        return Ok(false);
    }
    let snapshot = load_snapshot(chat, chat.current_position()).await?;
    Ok(snapshot.redacted_span().is_some())
}

/// What the compile says about the compaction that is due. Where it was refused, only the last round stays.
fn cause_of(call: Option<&CompiledCall>, trigger: u64) -> CompactionCause {
    let Some(call) = call else {
        return CompactionCause {
            room: Some(RoomGoal::default()),
            ..CompactionCause::default()
        };
    };
    CompactionCause {
        advice: call.advice.compact,
        room: Some(room_goal(&call.report, trigger)),
        tools: call.inputs.request.tools.clone(),
        growth: 0,
    }
}

fn room_goal(report: &Report, trigger: u64) -> RoomGoal {
    let beside = report.segments.iter();
    let beside = beside.filter(|segment| segment.band != "history");
    RoomGoal {
        trigger,
        fixed: beside.map(|segment| segment.tokens).sum(),
    }
}
