//! Compiling a call, compacting first where it is due.

use contexture_compile::Target;

use super::compact::{CompactOptions, CompactSpan, Compacted};
use super::trigger::{ReportedUsage, Trigger, UsagePreference, should_compact, usage_scale};
use crate::call::CompiledCall;
use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::options::CompileOptions;

/// How often a call is compacted at most before it is sent.
const ROUNDS: usize = 3;

/// When and how a call is compacted before it is sent.
#[derive(Clone, Debug, Default)]
pub struct PrepareOptions {
    /// From which size on.
    pub trigger: Trigger,
    /// Which figure counts.
    pub usage: UsagePreference,
    /// What the provider said of the last call. Default: what was stored with its answer, if
    /// [`Conversation::record`] stored it on this branch and it was a call of the same model.
    pub reported: Option<ReportedUsage>,
    /// How.
    pub compact: CompactOptions,
}

/// A compiled call, and what was compacted for it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The call.
    pub call: CompiledCall,
    /// What was compacted, in order; mostly nothing.
    pub compacted: Vec<Compacted>,
}

impl Conversation {
    /// Compiles a call, and compacts the history first if it has grown too large: compile, compact, compile
    /// again, a few times at most. Where nothing can be compacted the call is as [`Self::compile`] makes it.
    ///
    /// # Errors
    /// As [`Self::compile`] and [`Self::compact`]; what others stored meanwhile is no error.
    pub async fn prepare(
        &self,
        target: &Target,
        options: &PrepareOptions,
    ) -> Result<Prepared, EngineError> {
        self.prepare_with(target, options, CompileOptions::default())
            .await
    }

    /// As [`Self::prepare`], with what a call says and heeds beside its conversation.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub async fn prepare_with(
        &self,
        target: &Target,
        options: &PrepareOptions,
        compile: CompileOptions<'_>,
    ) -> Result<Prepared, EngineError> {
        let request = target.build_request(self.engine().catalogue())?;
        let space = request.window.saturating_sub(request.reserve);
        let reported = match (options.reported, options.usage) {
            (None, UsagePreference::Max | UsagePreference::ReportedFirst) => {
                self.last_reported_usage(&request.model).await?
            }
            (given, _) => given,
        };
        let scale = usage_scale(reported, options.usage);
        let mut compacted = Vec::new();
        loop {
            let compiled = self.compile_with(target, compile).await;
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
            how.span = CompactSpan::Older;
            // What the provider counts more than we do leaves so much less of the space.
            how.keep =
                u8::try_from(u64::from(how.keep) * 1_000 / scale.max(1_000)).unwrap_or(how.keep);
            let advice = compiled.as_ref().ok().and_then(|call| call.advice.compact);
            match self.compact_with_advice(target, &how, advice).await {
                Ok(one) => compacted.push(one),
                // Another did it: its compaction is as good.
                Err(EngineError::Store(contexture_store::Error::StateConflict { .. })) => {
                    return self
                        .compile_with(target, compile)
                        .await
                        .map(|call| Prepared { call, compacted });
                }
                Err(EngineError::NothingToCompact { .. }) => {
                    return compiled.map(|call| Prepared { call, compacted });
                }
                Err(error) => return Err(error),
            }
        }
    }
}
