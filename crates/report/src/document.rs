//! The report: what was sent, what was not, and which rule decided.
//!
//! Its JSON is for programs (`docs/schema/report.schema.json`): field names are stable, fields are
//! added and never renamed. The tokens of the segments sum exactly to `totals.tokens`. Every item of the path is either counted in the
//! `items` of a history segment that was kept, or in exactly one entry of `omitted`.

use std::borrow::Cow;

use contexture_prompt_cache::CacheReport;
use contexture_wire::Loss;
use serde::{Deserialize, Serialize};

use crate::deferred_list::DeferredList;

/// What one compile did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Of this document's shape: 1.
    pub version: u32,
    /// To whom, and how much was allowed.
    pub target: TargetReport,
    /// What the payload is made of, in its order, what was left out included.
    pub segments: Vec<Segment>,
    /// Sums over the whole payload.
    #[cfg_attr(test, schemars(description = "Sums."))]
    pub totals: Totals,
    /// The items of the path that are not in the payload, in path order.
    #[cfg_attr(test, schemars(with = "Vec<Omitted>"))]
    pub omitted: DeferredList<Omitted>,
    /// The items of the path that are shown otherwise than they are, in path order. What was trimmed is
    /// in `omitted` alone, whatever was done to it before.
    #[cfg_attr(test, schemars(with = "Vec<Rewritten>"))]
    pub rewritten: DeferredList<Rewritten>,
    /// The registered tools that are not offered, and why.
    pub removed_tools: Vec<RemovedTool>,
    /// Whether the model is offered the tool that reads what it was not shown, `read_context`.
    pub readable: bool,
    /// What was changed so that the provider accepts the history.
    #[cfg_attr(test, schemars(with = "Vec<Repair>"))]
    pub repairs: DeferredList<Repair>,
    /// What the target's format cannot say. Paths name `instructions`, `tools`, `options`, a field, or
    /// `items[i]`, an index on the path; `contributions[source][i]` for contributed items.
    #[cfg_attr(test, schemars(with = "Vec<crate::schema::Loss>"))]
    pub losses: DeferredList<Loss>,
    /// The rules of the user that are quoted at the start of the history because their messages are not in view; absent if there are
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<StandingReport>,
    /// Settings of the payload that are not as the caller's request has them.
    pub settings: Vec<SettingChange>,
    /// Whether the cached prefix of the previous request still holds.
    pub epoch: EpochReport,
    /// What the provider's cache is asked to keep, and what it is expected to bill.
    #[cfg_attr(test, schemars(with = "crate::schema::CacheReport"))]
    pub cache: CacheReport,
    /// Why nothing stands for what was trimmed, or for what is too large, although a compaction was due; absent if one was
    /// made or none was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_declined: Option<&'static str>,
    /// Why no summary of a model stands for what was compacted, or was to be, although one was wanted; absent if one does or none
    /// was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_missing: Option<String>,
    /// The payload itself.
    pub payload: PayloadReport,
}

/// The standing rules that are shown, and those for which there was no room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StandingReport {
    /// What they take.
    pub tokens: u64,
    /// Those that are shown, in their order.
    pub shown: Vec<RuleReport>,
    /// Those out of view that did not fit into 1,500 tokens and an eighth of the window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<RuleReport>,
}

/// A standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleReport {
    /// Its name, by which it can be dropped.
    pub id: String,
    /// Which of the user's messages says it, counted from 1.
    pub turn: usize,
}

/// A setting of the payload that is not as the caller's request has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingChange {
    /// The member, or the option: `tools`, `options.max_output_tokens`.
    pub field: String,
    /// Why it differs, in a sentence fragment without a full stop.
    pub why: &'static str,
}

/// A registered tool that is not offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemovedTool {
    /// Its name, behind that of its group: `files.read`.
    pub tool: String,
    /// Each reason against it: `tags`, `names`, `task`, `denied`, `not_loaded`.
    #[serde(rename = "why")]
    pub reasons: Vec<String>,
}

/// To whom, and how much was allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TargetReport {
    /// The format: `anthropic`, `openai-chat`, `openai-responses`, `gemini`.
    #[cfg_attr(test, schemars(with = "crate::schema::Format"))]
    pub format: Cow<'static, str>,
    /// The model as the provider knows it.
    pub model: String,
    /// The model's window in tokens.
    pub window: u64,
    /// Kept free for the answer.
    pub reserve: u64,
    /// Window minus reserve.
    pub limit: u64,
    /// What counted the text: `o200k_base`, ….
    pub encoding: String,
}

/// One row of the payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Segment {
    /// `tools`, `system`, `anchor`, `history`, `live`, `tail` or `framing`.
    #[cfg_attr(test, schemars(with = "crate::schema::SegmentBand"))]
    pub band: &'static str,
    /// Whose it is: a contribution's source, `task`, `rounds`, `tools`, `framing`.
    pub source: String,
    /// A few words for people: `rounds 3–9, 7 calls`.
    pub label: String,
    /// How many items of the path it holds; 0 for what is not of the path.
    pub items: usize,
    /// Tokens in the payload, as budgeted: the high bound of an estimate. 0 if it was left out.
    pub tokens: u64,
    /// The low bound; equal to `tokens` where counts are exact.
    pub low: u64,
    /// Tokens it would have taken beside those it takes.
    pub omitted_tokens: u64,
    /// Per cent of the limit.
    pub share: f64,
    /// What became of it.
    pub verdict: SegmentVerdict,
    /// The rule that decided, in a few words.
    pub rule: String,
    /// The same rule for programs. Not in the JSON.
    #[serde(skip)]
    pub rule_kind: SegmentRule,
    /// Indexes on the path of the first and the last item that it holds, stands for, or leaves out; `None` for what is not of
    /// the path. Not in the JSON.
    #[serde(skip)]
    pub span: Option<(usize, usize)>,
}

/// The rule that decided what became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SegmentRule {
    /// Offered tools are always sent.
    OfferedTools,
    /// Instructions are never cut.
    Instructions,
    /// It is pinned.
    Pinned,
    /// It is within its budget.
    WithinBudget,
    /// Only a part of it is within its budget.
    PartWithinBudget,
    /// There is no room within its budget.
    NoRoom,
    /// There is room for it.
    Fits,
    /// The last round is always sent.
    LastRound,
    /// The first message of the user is always sent.
    FirstMessage,
    /// What a history opens with is always sent.
    Opening,
    /// The message that is being answered is always sent.
    Question,
    /// A compaction stands for what it covers.
    Compaction,
    /// Old outputs are placeholders.
    OldOutputs,
    /// Outputs of calls that were made again are placeholders.
    RepeatedOutputs,
    /// Long outputs are previews.
    LongOutputs,
    /// Thinking that may not be sent any more is a text.
    ThinkingText,
    /// Thinking is bound to a history that was edited.
    BoundThinking,
    /// The oldest items no longer fit.
    OldestTrimmed,
    /// It is what the format adds.
    Framing,
}

impl SegmentRule {
    /// All rules, in the order of their stored codes: rules are added at the end.
    pub const ALL: [Self; 19] = [
        Self::OfferedTools,
        Self::Instructions,
        Self::Pinned,
        Self::WithinBudget,
        Self::PartWithinBudget,
        Self::NoRoom,
        Self::Fits,
        Self::LastRound,
        Self::FirstMessage,
        Self::Opening,
        Self::Question,
        Self::Compaction,
        Self::OldOutputs,
        Self::RepeatedOutputs,
        Self::LongOutputs,
        Self::ThinkingText,
        Self::BoundThinking,
        Self::OldestTrimmed,
        Self::Framing,
    ];

    /// Returns the lower-case word for the rule.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OfferedTools => "offered_tools",
            Self::Instructions => "instructions",
            Self::Pinned => "pinned",
            Self::WithinBudget => "within_budget",
            Self::PartWithinBudget => "part_within_budget",
            Self::NoRoom => "no_room",
            Self::Fits => "fits",
            Self::LastRound => "last_round",
            Self::FirstMessage => "first_message",
            Self::Opening => "opening",
            Self::Question => "question",
            Self::Compaction => "compaction",
            Self::OldOutputs => "old_outputs",
            Self::RepeatedOutputs => "repeated_outputs",
            Self::LongOutputs => "long_outputs",
            Self::ThinkingText => "thinking_text",
            Self::BoundThinking => "bound_thinking",
            Self::OldestTrimmed => "oldest_trimmed",
            Self::Framing => "framing",
        }
    }
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(test, schemars(rename = "Verdict"))]
pub enum SegmentVerdict {
    /// Shown as it is.
    #[cfg_attr(test, schemars(description = "Whole."))]
    Kept,
    /// Whole, and the request would have been refused otherwise.
    Required,
    /// Only a part of it.
    Shortened,
    /// With old content as placeholders.
    Cleared,
    /// History that no longer fits.
    Trimmed,
    /// A contribution for which there was no room, or thinking that may not be sent any more.
    Dropped,
}

impl SegmentVerdict {
    /// The words in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Required => "kept (required)",
            Self::Shortened => "shortened",
            Self::Cleared => "cleared",
            Self::Trimmed => "trimmed",
            Self::Dropped => "dropped",
        }
    }

    /// Whether any of it is in the payload.
    #[must_use]
    pub const fn is_in_payload(self) -> bool {
        matches!(
            self,
            Self::Kept | Self::Required | Self::Shortened | Self::Cleared
        )
    }
}

/// Sums over the payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    /// The payload's tokens, as budgeted: the sum over all segments.
    pub tokens: u64,
    /// The low bound.
    pub low: u64,
    /// Whether text and media were counted, not estimated; what the format adds is known within bounds at best.
    pub exact: bool,
    /// What was counted, before calibration narrowed it to `low` and `tokens`.
    pub counted: TokenRange,
    /// The count that the budget went by: `likely` where the provider refuses what is too long, else `upper`.
    pub count: &'static str,
    /// The most that the payload can have; above the limit only with the likely count.
    pub upper: u64,
    /// How many tokens fewer than budgeted it may have: so much of the window may stay unused because the count is an
    /// estimate.
    pub uncertain: u64,
    /// The chance in per cent that the provider refuses the payload as too long, after which it is compiled once more by
    /// the upper bound; 0 where the upper bound fits.
    pub refusal_percent: f64,
    /// What can make the payload longer than `upper`, because the provider adds to it what nobody else can count.
    pub unbounded: Vec<String>,
    /// Of `tokens`: what the format adds around messages, tools and the request.
    pub framing: u64,
    /// Per cent of the limit.
    pub share: f64,
    /// Items on the path.
    pub items: usize,
    /// Elements of the payload's array of messages.
    pub messages: usize,
}

/// A number of tokens between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Counted"))]
pub struct TokenRange {
    /// At least so many.
    pub low: u64,
    /// At most so many.
    pub high: u64,
}

/// Items of the path that are not in the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Omitted {
    /// Index on the path of the first.
    pub first: usize,
    /// Index on the path of the last.
    pub last: usize,
    /// How many: items between that are omitted for another reason have an entry of their own.
    pub items: usize,
    /// Reason for leaving the items out.
    #[cfg_attr(test, schemars(description = "Why."))]
    #[serde(rename = "why")]
    pub reason: OmitReason,
}

/// An item that is shown otherwise than it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rewritten {
    /// Its index on the path.
    pub index: usize,
    /// The way the item is shown.
    #[cfg_attr(test, schemars(description = "How."))]
    #[serde(rename = "how")]
    pub rewriting: Rewriting,
    /// Where the whole output can be read: `context://vfs/` and the item's content hash. Absent where the model is not offered
    /// the tool that reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Its tokens as it is.
    pub tokens_before: u64,
    /// Its tokens as it is shown.
    pub tokens_after: u64,
}

/// How an item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rewriting {
    /// An old output, as a placeholder.
    Cleared,
    /// The output of a call that was made again later, as a placeholder.
    Repeated,
    /// A long output, as its beginning, its errors, its end and a link.
    Previewed,
    /// Thinking that may not be sent any more, as a text of the model's.
    ThinkingText,
}

impl Rewriting {
    /// The word in reports and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cleared => "cleared",
            Self::Repeated => "repeated",
            Self::Previewed => "previewed",
            Self::ThinkingText => "thinking_text",
        }
    }

    /// Returns the rule that decided, in a few words.
    #[must_use]
    pub const fn rule_text(self) -> &'static str {
        match self {
            Self::Cleared => "an old output, shown as a placeholder",
            Self::Repeated => "its call was made again later; shown as a placeholder",
            Self::Previewed => "longer than the threshold of previews",
            Self::ThinkingText => "bound to a history that was edited; shown as text",
        }
    }
}

/// Why items are not in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OmitReason {
    /// Not meant for models.
    Audience,
    /// Bookkeeping, which no model reads.
    Bookkeeping,
    /// The history was trimmed.
    Trimmed,
    /// A provider would have refused it; see the repairs.
    Repaired,
    /// A compaction stands for it.
    Covered,
    /// A compaction that is not in effect.
    Uncovered,
    /// Old thoughts were left out.
    #[cfg_attr(test, schemars(description = "Old thoughts."))]
    Cleared,
    /// A pass of the host's left it out.
    Host,
    /// Thinking that its model binds to a history that was edited since.
    BoundThinking,
}

impl OmitReason {
    /// The word in reports and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Audience => "audience",
            Self::Bookkeeping => "bookkeeping",
            Self::Trimmed => "trimmed",
            Self::Repaired => "repaired",
            Self::Covered => "covered",
            Self::Uncovered => "uncovered",
            Self::Cleared => "cleared",
            Self::Host => "host",
            Self::BoundThinking => "bound_thinking",
        }
    }

    /// Returns the rule that decided, in a few words.
    #[must_use]
    pub const fn rule_text(self) -> &'static str {
        match self {
            Self::Audience => "not meant for models",
            Self::Bookkeeping => "no model reads it",
            Self::Trimmed => "older than what fits",
            Self::Repaired => "a provider would have refused it",
            Self::Covered => "a compaction stands for it",
            Self::Uncovered => "a compaction that is not in effect",
            Self::Cleared => "an old thought",
            Self::Host => "a pass of the host's left it out",
            Self::BoundThinking => "thinking bound to a history that was edited",
        }
    }
}

/// One change that made the history acceptable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Repair {
    /// Index on the path, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// A stable word for the change.
    pub what: String,
    /// The change in a sentence fragment.
    #[serde(rename = "why")]
    pub reason: String,
}

/// Why an epoch began: the reason a cached prefix no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EpochReason {
    /// The first compile with this plan.
    First,
    /// Another format, model or limit.
    TargetChanged,
    /// Other tools are offered.
    #[cfg_attr(test, schemars(description = "Other tools."))]
    ToolsChanged,
    /// Another system prompt.
    InstructionsChanged,
    /// Another anchor is in front of the history.
    #[cfg_attr(test, schemars(description = "Another anchor."))]
    AnchorChanged,
    /// The history is not an extension of the one sent last.
    HistoryChanged,
    /// The history no longer fitted, so its older part was left out.
    HistoryTrimmed,
    /// The history grew too large, so old content was cleared.
    HistoryCleared,
    /// Another compaction is in effect, or one no longer is.
    HistoryCompacted,
    /// Long outputs are previewed from now on.
    HistoryPreviewed,
    /// The plan that the caller gave could not be read, so all was decided anew.
    PlanUnreadable,
    /// Other standing rules are shown: one was dropped, or restored.
    #[cfg_attr(test, schemars(description = "Other standing rules are shown."))]
    RulesChanged,
}

impl EpochReason {
    /// All reasons, in the order of their codes in stored bands: reasons are added at the end.
    pub const ALL: [Self; 12] = [
        Self::First,
        Self::TargetChanged,
        Self::ToolsChanged,
        Self::InstructionsChanged,
        Self::AnchorChanged,
        Self::HistoryChanged,
        Self::HistoryTrimmed,
        Self::HistoryCleared,
        Self::HistoryCompacted,
        Self::HistoryPreviewed,
        Self::PlanUnreadable,
        Self::RulesChanged,
    ];

    /// Returns the reason of a word; `None` for a word of another version.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// The word in reports and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::TargetChanged => "target_changed",
            Self::ToolsChanged => "tools_changed",
            Self::InstructionsChanged => "instructions_changed",
            Self::AnchorChanged => "anchor_changed",
            Self::HistoryChanged => "history_changed",
            Self::HistoryTrimmed => "history_trimmed",
            Self::HistoryCleared => "history_cleared",
            Self::HistoryCompacted => "history_compacted",
            Self::HistoryPreviewed => "history_previewed",
            Self::PlanUnreadable => "plan_unreadable",
            Self::RulesChanged => "rules_changed",
        }
    }
}

/// Whether the cached prefix of the previous request still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EpochReport {
    /// The epoch of this payload.
    pub number: u64,
    /// Why it began.
    pub reason: EpochReason,
    /// Whether it began with this compile.
    pub opened: bool,
}

/// The payload itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PayloadReport {
    /// Its length in bytes.
    pub bytes: usize,
    /// Its fingerprint, 32 hexadecimal digits; see `Payload::fingerprint`.
    pub fingerprint: String,
}
