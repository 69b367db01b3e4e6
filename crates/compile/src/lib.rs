//! Items and contributions compiled into a provider payload under a token budget.
//!
//! [`compile`] is a function: a path of items, contributions, a plan and a request go in; a
//! [`Payload`], a [`Report`], the next [`Plan`] and [`Advice`] come out. It performs
//! nothing, and the same input gives the same bytes whatever the [`Scratch`] holds. It is built like a
//! compiler: formats are read elsewhere (`contexture-wire`), small passes that do not know each other
//! work on items, the target's writer makes chunks of JSON, and the report explains every decision.
//!
//! Every payload satisfies the post-condition, for any history whatever: the structure is legal for
//! the target, every call has its output, pinned text stands in it unchanged, and it takes at most
//! window minus reserve. What cannot be compiled so is refused with a [`Refusal`].
//!
//! Not here: reading formats, storage, clocks, randomness, HTTP, summaries by a model.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod answers;
mod aside;
mod assemble;
mod block;
mod cache;
mod calibration;
mod cancel;
mod clearing;
pub mod compaction;
mod compiler;
mod contribution;
mod converting;
mod count;
mod cut;
mod digest;
mod edges;
mod element;
mod entry;
mod frame;
mod front;
mod guardrails;
mod hex;
mod history;
mod marking;
mod memo;
mod narrowing;
mod offered;
mod params;
mod passes;
mod payload;
mod pipeline;
mod plan;
mod policy;
mod preview;
mod previewing;
pub mod reading;
mod refusal;
mod report;
mod request;
mod scratch;
mod stakes;
mod state;
mod stored;
mod treatment;
mod weigh;

pub use aside::CallContext;
pub use cache::bill::{CacheUsage, Rates};
pub use cache::content::{CacheAdvice, CachedContent, ContentIgnored, ContentReport};
pub use cache::diff::{CacheDiff, DiffError, DiffTarget, Difference, RebilledCost, cache_diff};
pub use cache::marks::{
    CacheMarker, CachedPrefix, MarkerPlan, MarkerPolicy, MarkerReason, active_markers,
    place_markers,
};
pub use cache::outline::{Outline, OutlineSegment, RequestPart, SegmentStability};
pub use cache::predict::predict_usage;
pub use cache::read::OutlineError;
pub use cache::report::{CacheReport, MarkReport};
pub use cache::rules::CacheRules;
pub use cache::trace::{CacheSimulator, TracedCall, simulate_calls, simulate_windowed_calls};
pub use cache::worth::{
    CacheState, CallTokens, Rewrite, RewriteValue, invalidated_tokens, rewrite_value,
};
pub use calibration::{Calibration, CountedRequest};
pub use cancel::Cancel;
pub use compiler::{CompileError, Compiler, Target};
pub use contexture_tokens::TokenCounter;
pub use contribution::{Band, Budget, Content, Contribution, Stability};
pub use converting::{Converted, Converter};
pub use count::{Framing, TokenBounds};
pub use guardrails::{GuardrailError, Guardrails};
pub use narrowing::CalibratedRange;
pub use offered::{OfferedTools, ToolOffer};
pub use passes::host::{Pass, PassPoint, ViewItem};
pub use payload::Payload;
pub use pipeline::{Compiled, compile};
pub use plan::{
    Advice, ClearFrontier, CompactAdvice, EpochReason, EpochReport, Plan, Prefix, SentHistory,
    TrimFrontier,
};
pub use policy::{CachePolicy, Clear, ClearPolicy, HistoryPolicy, TrimPolicy, Window};
pub use preview::{
    Link, LinkError, Preview, PreviewFacts, PreviewPolicy, Previewed, Previewer, Previewing,
    TextSize, ToolPreview,
};
pub use reading::{READ_TOOL, read_tool};
pub use refusal::{Refusal, RequiredSegment};
pub use report::document::{
    OmitReason, Omitted, PayloadReport, RemovedTool, Repair, Report, Rewriting, Rewritten, Segment,
    SegmentVerdict, TargetReport, TokenRange, Totals,
};
pub use report::figures;
pub use report::html::render_html;
pub use report::items::{ItemVerdict, explain_items};
pub use report::table::{Width, render_table};
pub use request::{CompileInput, CompileRequest, Cover, PathItem};
pub use scratch::Scratch;
pub use state::{Placement, StateError};
pub use stored::{COMPILER, StoredCallError, load_call, store_call};
