//! Compiling a call, compacting the history first where it has grown too large.

use std::sync::Arc;

use contexture_compile::Target;

use super::branch_snapshot::load_snapshot;
use super::compact::{
    CompactOptions, CompactSpan, Compacted, CompactionCause, RoomGoal, compact_with_cause,
};
use super::compactor::GivenSummary;
use super::notice::{NoticePolicy, compile_with_notice, find_new_context};
use super::reported_usage::last_reported_usage;
use super::trigger::{
    ReportedUsage, Trigger, UsagePreference, should_compact, trigger_size, usage_scale,
};
use crate::call::{CompileOptions, CompiledCall, compile_call};
use crate::error::EngineError;
use crate::handle::{Conversation, EngineEventKind, read_full_path};

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
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self {
            trigger: Trigger::default(),
            usage: UsagePreference::default(),
            reported: None,
            notice: Some(NoticePolicy::default()),
            compact: CompactOptions::default(),
        }
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
    let space = request.window.saturating_sub(request.reserve);
    // What the caller knows wins; the store is asked only where the figure is used.
    let reported = match (options.reported, options.usage) {
        (None, UsagePreference::Max | UsagePreference::ReportedFirst) => {
            last_reported_usage(chat, &request.model).await?
        }
        (given, _) => given,
    };
    let scale = usage_scale(reported, options.usage);
    let trigger = trigger_size(options.trigger, space, scale);
    let compiled = compile_call(chat, target.into(), compile).await;
    // A model's own wish, before the size asks for it.
    let wish = find_new_context(chat).await?;
    // A refused compile is due as well: compacting may be what makes it fit. Other errors are not about size.
    let is_due = match &compiled {
        Ok(call) => {
            let counted = call.report.totals.tokens;
            call.advice.compact.is_some() || should_compact(options.trigger, counted, space, scale)
        }
        Err(EngineError::Refused(_)) => true,
        Err(_) => false,
    };
    let is_due = is_due || has_redacted_compaction(chat).await?;
    if !is_due && wish.is_none() {
        let call = compiled?;
        let told = match &options.notice {
            Some(notice) => {
                compile_with_notice(chat, target, (&call, compile), (notice, trigger)).await?
            }
            None => None,
        };
        return Ok(Prepared::unchanged(told.unwrap_or(call)));
    }
    let mut how = options.compact.clone();
    // A span of fixed nodes can be compacted once only; every call needs one of its own.
    how.span = CompactSpan::Older;
    // What the provider counts more than we do leaves so much less of the space.
    how.retained_percent = u8::try_from(u64::from(how.retained_percent) * 1_000 / scale.max(1_000))
        .unwrap_or(how.retained_percent);
    let mut cause = cause_of(compiled.as_ref().ok(), trigger);
    if let Some(wish) = wish {
        // What the model wants to go on from stands before the manifest, and only its last round behind that.
        cause.room = Some(RoomGoal::default());
        if let Some(summary) = wish.summary.and_then(GivenSummary::new) {
            how.compactor = Arc::new(summary);
        }
    }
    match compact_with_cause(chat, target, &how, &cause).await {
        Ok(one) => {
            let call = compile_call(chat, target.into(), compile).await?;
            Ok(Prepared {
                compacted: vec![one],
                ..Prepared::unchanged(call)
            })
        }
        // Another did it: its compaction is as good.
        Err(EngineError::Store(contexture_store::Error::StateConflict { .. })) => {
            let call = compile_call(chat, target.into(), compile).await?;
            Ok(Prepared::unchanged(call))
        }
        // As good as it gets: the caller gets the call, or the refusal, of the compile.
        Err(EngineError::NothingToCompact { reason }) => {
            chat.publish(|| EngineEventKind::CompactionDeclined { reason });
            let mut call = compiled?;
            call.report.compaction_declined = Some(reason);
            Ok(Prepared {
                declined: Some(reason),
                ..Prepared::unchanged(call)
            })
        }
        Err(error) => Err(error),
    }
}

/// Whether a compaction in effect was redacted: it is made anew, without what was redacted in it.
async fn has_redacted_compaction(chat: &Conversation) -> Result<bool, EngineError> {
    let path = read_full_path(chat, chat.current_position()).await?;
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
    let beside = call.report.segments.iter();
    let beside = beside.filter(|segment| segment.band != "history");
    CompactionCause {
        advice: call.advice.compact,
        room: Some(RoomGoal {
            trigger,
            fixed: beside.map(|segment| segment.tokens).sum(),
        }),
        tools: call.inputs.request.tools.clone(),
    }
}
