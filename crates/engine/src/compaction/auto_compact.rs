//! Compiling a call, compacting the history first where it has grown too large.

use contexture_compile::Target;

use super::compact::{CompactOptions, CompactSpan, Compacted, compact_with_advice};
use super::reported_usage::last_reported_usage;
use super::trigger::{ReportedUsage, Trigger, UsagePreference, should_compact, usage_scale};
use crate::call::{CompileOptions, CompiledCall, compile_call};
use crate::error::EngineError;
use crate::handle::Conversation;

/// How often a call is compacted at most before it is sent.
const ROUNDS: usize = 3;

/// When and how a call is compacted before it is sent.
#[derive(Clone, Debug, Default)]
pub struct PrepareOptions {
    /// The size above which the history is compacted.
    pub trigger: Trigger,
    /// Which token figure decides when both are known.
    pub usage: UsagePreference,
    /// What the provider said of the last call. Default: what was stored with its answer, if
    /// [`Conversation::record`] stored it on this branch and it was a call of the same model.
    pub reported: Option<ReportedUsage>,
    /// Options for each compaction.
    pub compact: CompactOptions,
}

/// A compiled call, and what was compacted for it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The call that was compiled.
    pub call: CompiledCall,
    /// What was compacted, in order; mostly nothing.
    pub compacted: Vec<Compacted>,
}

/// Compiles a call, with options for the compile, and compacts the history first as often as it is due.
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
    let mut compacted = Vec::new();
    loop {
        let compiled = compile_call(chat, target.into(), compile).await;
        // A refused compile is due as well: compacting may be what makes it fit. Other errors are not about size.
        let due = match &compiled {
            Ok(call) => {
                let counted = call.report.totals.tokens;
                call.advice.compact.is_some()
                    || should_compact(options.trigger, counted, space, scale)
            }
            Err(EngineError::Refused(_)) => true,
            Err(_) => false,
        };
        if !due || compacted.len() >= ROUNDS {
            return compiled.map(|call| Prepared { call, compacted });
        }
        let mut how = options.compact.clone();
        // A span of fixed nodes can be compacted once only; every round needs one of its own.
        how.span = CompactSpan::Older;
        // What the provider counts more than we do leaves so much less of the space.
        how.retained_percent =
            u8::try_from(u64::from(how.retained_percent) * 1_000 / scale.max(1_000))
                .unwrap_or(how.retained_percent);
        let advice = compiled.as_ref().ok().and_then(|call| call.advice.compact);
        match compact_with_advice(chat, target, &how, advice).await {
            Ok(one) => compacted.push(one),
            // Another did it: its compaction is as good.
            Err(EngineError::Store(contexture_store::Error::StateConflict { .. })) => {
                return compile_call(chat, target.into(), compile)
                    .await
                    .map(|call| Prepared { call, compacted });
            }
            // As good as it gets: the caller gets the call, or the refusal, of the compile.
            Err(EngineError::NothingToCompact { .. }) => {
                return compiled.map(|call| Prepared { call, compacted });
            }
            Err(error) => return Err(error),
        }
    }
}
