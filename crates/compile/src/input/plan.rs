//! The plan: what one compile decided about the history and the next one keeps to.
//!
//! Providers cache by prefix, so whatever removes earlier content is decided once and stays decided
//! until a trigger fires. The plan travels with the conversation (a state entry on its node), so it
//! rewinds with it. A plan that does not belong to the path it is given with is noticed and replaced,
//! never obeyed.

use contexture_ir::ContentHash;
use contexture_prompt_cache::{CacheAdvice, CachedPrefix, Prefix, SentHistory, ThinkingFrontier};
use contexture_report::{EpochReason, EpochReport};
use serde::{Deserialize, Serialize};

use crate::input::calibrated_range::CalibratedRange;
use crate::input::rule_id::RuleId;
use crate::input::tool_offer::OfferedTools;

/// The latched decisions. Its JSON is stable; unknown fields are ignored, absent ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Counts the changes of the cacheable prefix.
    pub epoch: u64,
    /// Why the current epoch began; absent before the first compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<EpochReason>,
    /// What stands before the history; absent before the first compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// The history as it was sent last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentHistory>,
    /// What the provider is expected to keep of the payload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "kept")]
    pub cached_prefixes: Vec<CachedPrefix>,
    /// The identity of the compactions in effect, if there are any.
    #[serde(
        with = "contexture_ir::hex::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub covers: Option<ContentHash>,
    /// Up to where old content is cleared, if any is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear: Option<ClearFrontier>,
    /// Where the history begins, if its older part is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimFrontier>,
    /// From where on thinking is sent, if an edit has taken some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_from: Option<ThinkingFrontier>,
    /// How ranges of counts were narrowed, if they were. A request says it anew
    /// ([`CompileRequest::calibrated_range`](crate::CompileRequest::calibrated_range)); hosts hold it through an epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "narrowing")]
    pub calibrated_range: Option<CalibratedRange>,
    /// The tools that were offered out of a registry, in their order, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<OfferedTools>,
    /// Whether long outputs are previewed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previews: bool,
    /// How many more calls until the last rewriting that was made for money has paid back what it cost; before that
    /// there is no other.
    #[serde(skip_serializing_if = "is_zero")]
    #[serde(rename = "owes")]
    pub payback_calls: u64,
    /// The standing rules that are shown at the start of the history, as their messages are not in view.
    #[serde(skip_serializing_if = "LatchedRules::is_empty")]
    pub rules: LatchedRules,
}

/// The standing rules that a call showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatchedRules {
    /// Their names, in the order in which they are shown.
    pub shown: Vec<RuleId>,
    /// The identity of what the host had dropped, if it had dropped any.
    #[serde(
        with = "contexture_ir::hex::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub dropped: Option<ContentHash>,
}

impl LatchedRules {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(calls: &u64) -> bool {
    *calls == 0
}

/// The oldest item of the history that is still sent, the user messages apart that always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimFrontier {
    /// Its index on the path.
    pub index: usize,
    /// Its content hash, by which a plan of another path is noticed.
    #[serde(with = "contexture_ir::hex")]
    pub hash: ContentHash,
    /// The index of the user message that was being answered when the history was cut here, if it
    /// stands before the frontier: it stays with the first user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<usize>,
}

/// Up to where old content is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearFrontier {
    /// Outputs before this index on the path are cleared.
    pub outputs: usize,
    /// Thoughts before this index are left out.
    pub reasoning: usize,
    /// Of the calls before this index, those that were made again are noticed.
    #[serde(rename = "settled")]
    pub repeats: usize,
    /// The content hash of the item at `settled`, by which a plan of another path is noticed.
    #[serde(with = "contexture_ir::hex")]
    pub hash: ContentHash,
}

impl ClearFrontier {
    /// Nothing is cleared.
    pub(crate) const NONE: Self = Self {
        outputs: 0,
        reasoning: 0,
        repeats: 0,
        hash: ContentHash::from_bytes([0; 16]),
    };
}

impl Plan {
    /// The plan of a caller whose own could not be read: all is decided anew, for that reason.
    pub(crate) fn unreadable() -> Self {
        Self {
            reason: Some(EpochReason::PlanUnreadable),
            ..Self::default()
        }
    }

    /// The plan after a payload: `sent` is how many blocks its history has, and the hash over the first of them.
    pub(crate) fn next_plan(
        &self,
        prefix: Prefix,
        (blocks, hash): (usize, &dyn Fn(usize) -> ContentHash),
        view: PlanDecisions,
    ) -> (Self, EpochReport) {
        let (extends, now) =
            SentHistory::of_prefixes(blocks, hash, self.sent.as_ref(), view.newest);
        // In the order in which a payload is read: the first part that changed is why the cached
        // prefix ends, whatever changed after it.
        let reason = match &self.prefix {
            // Only a plan that could not be read gives a reason without a call before.
            None => self.reason.or(Some(EpochReason::First)),
            Some(before) if before.target != prefix.target => Some(EpochReason::TargetChanged),
            Some(before) if before.tools != prefix.tools => Some(EpochReason::ToolsChanged),
            Some(before) if before.system != prefix.system => {
                Some(EpochReason::InstructionsChanged)
            }
            Some(before) if before.anchor != prefix.anchor => Some(EpochReason::AnchorChanged),
            Some(_) if view.trimmed => Some(EpochReason::HistoryTrimmed),
            Some(_) if view.cleared => Some(EpochReason::HistoryCleared),
            Some(_) if !extends && self.covers != view.covers => {
                Some(EpochReason::HistoryCompacted)
            }
            Some(_) if !extends && self.previews != view.previews => {
                Some(EpochReason::HistoryPreviewed)
            }
            Some(_) if !extends => Some(EpochReason::HistoryChanged),
            // Behind all that moves messages out of view: that is why other rules are shown.
            Some(_) if self.rules != view.rules => Some(EpochReason::RulesChanged),
            Some(_) => None,
        };
        let opened = reason.is_some();
        // Saturates: a stored plan may carry any number.
        let epoch = self.epoch.saturating_add(u64::from(opened));
        let reason = reason.or(self.reason).unwrap_or(EpochReason::First);
        let plan = Self {
            epoch,
            reason: Some(reason),
            prefix: Some(prefix),
            sent: Some(now),
            cached_prefixes: view.kept,
            covers: view.covers,
            clear: view.clear,
            trim: view.trim,
            thinking_from: view.thinking_from,
            calibrated_range: view.narrowing,
            tools: view.tools,
            previews: view.previews,
            payback_calls: view.payback_calls,
            rules: view.rules,
        };
        let report = EpochReport {
            number: epoch,
            reason,
            opened,
        };
        (plan, report)
    }
}

/// What a compile decided about the view of the history, and what it expects to be cached.
pub(crate) struct PlanDecisions {
    pub(crate) kept: Vec<CachedPrefix>,
    pub(crate) covers: Option<ContentHash>,
    pub(crate) clear: Option<ClearFrontier>,
    /// Whether this compile moved that frontier.
    pub(crate) cleared: bool,
    pub(crate) trim: Option<TrimFrontier>,
    /// Whether this compile moved that one.
    pub(crate) trimmed: bool,
    pub(crate) thinking_from: Option<ThinkingFrontier>,
    /// The newest block of the history, if thinking is bound to it.
    pub(crate) newest: Option<ContentHash>,
    pub(crate) narrowing: Option<CalibratedRange>,
    pub(crate) tools: Option<OfferedTools>,
    pub(crate) previews: bool,
    pub(crate) payback_calls: u64,
    pub(crate) rules: LatchedRules,
}

/// What the host may want to do before the next call. Data: compile performs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// The history was trimmed: a compaction would bring its substance back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact: Option<CompactAdvice>,
    /// A cache object of what stands before the history would pay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheAdvice>,
}

/// The span of a path that a compaction would bring back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CompactAdvice {
    /// Index on the path of the first item left out.
    pub first: usize,
    /// Index on the path of the last item left out.
    pub last: usize,
    /// What the span weighs, in tokens.
    pub tokens: u64,
}
