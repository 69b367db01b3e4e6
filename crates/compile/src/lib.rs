//! Items and contributions compiled into a provider payload under a token budget.
//!
//! [`compile`] is a function: a path of items, contributions, a plan and a request go in; a [`Payload`], a [`Report`], the next
//! [`Plan`] and [`Advice`] come out. It performs nothing, and the same input gives the same bytes whatever the [`Scratch`]
//! holds. It is built like a compiler: formats are read elsewhere (`contexture-wire`), small passes that do not know each other
//! work on items, the target's writer makes chunks of JSON, and the report explains every decision.
//!
//! Every payload satisfies the post-condition for any history: its structure is legal for the target, every call has its
//! output, pinned text is in it unchanged, and it takes at most window minus reserve. All else is a [`Refusal`].
//!
//! Not here: reading formats, storage, clocks, randomness, HTTP, summaries by a model.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod blocks;
mod budget;
mod calibration;
mod compaction_schedule;
mod compiler;
mod contributions;
mod error;
mod growing;
mod history;
mod input;
mod payload;
mod pipeline;
mod rewrite;
mod standing_rules;
mod stored_call;

pub use calibration::{Calibration, CountedRequest};
pub use compiler::{
    Compiler, Converted, Converter, DocumentPlan, ItemVerdict, Target, explain_items,
};
pub use contexture_condense::{
    Link, LinkError, Preview, PreviewFacts, PreviewPolicy, Previewed, Previewer, Previewing,
    READ_TOOL, TextSize, ToolPreview, read_tool,
};
pub use contexture_ir::Cancel;
pub use contexture_prompt_cache::{
    CacheAdvice, CacheDiff, CacheMarker, CacheReport, CacheRules, CacheSimulator, CacheState,
    CacheUsage, CachedContent, CachedPrefix, CallTokens, ContentIgnored, ContentReport, DiffError,
    DiffTarget, Difference, EditedThinking, Framing, MarkerPlan, MarkerPolicy, MarkerReason,
    MarkerReport, Outline, OutlineError, OutlineSegment, Prefix, Question, Rates, RebilledCost,
    RequestPart, Rewrite, RewriteValue, SegmentList, SegmentStability, SegmentTotals, SentHistory,
    ThinkingFrontier, TracedCall, active_markers, cache_diff, invalidated_tokens, place_markers,
    predict_continued, predict_usage, rewrite_value, simulate_calls, simulate_windowed_calls,
};
pub use contexture_report::{
    BandError, BandPart, CallBand, DeferredList, EpochReason, EpochReport, MAX_BAND_BYTES,
    OmitReason, Omitted, PageItem, PayloadReport, PrefixBreak, RemovedTool, Repair, Report,
    Rewriting, Rewritten, RuleReport, Segment, SegmentRule, SegmentVerdict, SettingChange,
    StandingReport, TargetReport, TokenRange, Totals, Width, break_text, number_format, part_kind,
    render_band, render_html, render_html_with, render_left_out, render_table,
};
pub use contexture_tokens::{TokenBounds, TokenCounter};
pub use contributions::system_prompt;
pub use error::{CompileError, Refusal, RequiredSegment};
pub use input::{
    AdapterError, Advice, Band, Budget, BudgetCount, CachePolicy, CalibratedRange, CallContext,
    Clear, ClearFrontier, ClearPolicy, CompactAdvice, CompileInput, CompileRequest, Content,
    Contribution, Cover, GrowingPath, GuardrailError, Guardrails, HistoryPolicy, LatchedRules,
    OfferedTools, Pass, PassPoint, PathItem, PathItems, Placement, Plan, RetryBudget, RuleId,
    SharedAdapter, Stability, StandingRulesPolicy, StateError, TargetAdapter, ToolOffer,
    TrimFrontier, TrimPolicy, ViewItem, Window,
};
pub use payload::Payload;
pub use pipeline::{Compiled, Scratch, compile};
pub use standing_rules::{StandingRule, list_standing_rules};
pub use stored_call::{AdapterLookup, COMPILER, StoredCallError, load_call, store_call};

/// What stands for items that are no longer shown: manifests, summaries, and the covers that name their span.
pub mod compaction {
    pub use contexture_condense::{
        CallEffect, ChangeOutcome, ChangingCall, CommandEntry, CoveredItem, Fact, FileEntry,
        LinkEntry, Manifest, ManifestEntry, ManifestText, NEW_CONTEXT, NEW_CONTEXT_REPLY,
        NamedValues, SentenceKind, SummaryError, SummaryOptions, SummaryTask, TextBudget,
        ToolHints, UserSentence, new_context_summary, new_context_tool, read_summary,
        summary_lines, summary_reminder, summary_request, summary_task,
    };

    pub use contexture_wire::NativeCompaction;

    pub use crate::compaction_schedule::{
        MANIFEST_PERCENT, RoomAfterCompaction, StandingCompaction, absorbed_count, gains_enough,
        manifest_budget, retained_tokens, without_quoted_rules,
    };
    pub use crate::history::{ActiveCovers, COVERS};
}

/// Reading what is not in view: excerpts and matching lines.
pub mod reading {
    pub use contexture_condense::{
        Excerpt, FindOptions, FoundLine, FoundLines, Matcher, PathMatches, Pattern, PatternError,
        READ_TOOL, ReadCall, ReadCallError, ReadReply, SearchHit, TextPosition, excerpt_reply,
        extract_excerpt, find_lines, matches_reply, read_tool, search_reply,
    };
}
