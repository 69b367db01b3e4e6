//! A model of the prompt caches of model providers.
//!
//! A provider that has seen the beginning of a request before reads it from its cache, at a fraction of the price of
//! input. This crate answers, without sending anything, what such a cache will do with a request:
//!
//! * [`Outline`] is a request as its cache compares it: segments with hashes and token bounds, in the cache's order.
//! * [`place_markers`] decides where cache markers go (a provider may call them breakpoints).
//! * [`predict_usage`] gives what the next call reads and writes; [`CacheSimulator`] does so for a whole series of calls.
//! * [`rewrite_value`] weighs what a shorter history saves against the cached prefix that it throws away.
//! * [`AnsweredHistory`] tells which thinking a model would refuse that binds it to its prefix.
//! * [`cache_diff`] shows where two requests part, in the provider's own words for the reason.
//!
//! Everything here is a function of its arguments; time is a parameter. Facts of models come from the catalogue, facts of
//! providers' caches are in [`CacheRules`], those of their formats in [`contexture_wire::CacheKeyRules`].
//!
//! Not here: decisions about a history, which are the compiler's, and calls to a provider.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod bound_thinking;
mod cost;
mod diff;
mod framing;
mod markers;
mod objects;
mod outline;
mod predict;
mod report;
mod rules;
mod sent_history;

pub use bound_thinking::{AnsweredHistory, EditedThinking, PathBlock, ThinkingFrontier};
pub use contexture_wire::RequestPart;
pub use cost::{
    CacheState, CacheUsage, CallTokens, Question, Rates, Rewrite, RewriteValue, invalidated_tokens,
    rewrite_value,
};
pub use diff::{CacheDiff, DiffError, DiffTarget, Difference, RebilledCost, cache_diff};
pub use framing::Framing;
pub use markers::{
    CacheMarker, CachedPrefix, MarkerPlan, MarkerPolicy, MarkerReason, active_markers,
    place_markers,
};
pub use objects::{
    CacheAdvice, CachedContent, CallHorizon, ContentIgnored, ContentReport, advise_cache_object,
};
pub use outline::{
    Outline, OutlineError, OutlineSegment, SegmentList, SegmentStability, SegmentTotals,
    automatic_marker, setting_value,
};
pub use predict::{
    CacheSimulator, TracedCall, predict_continued, predict_usage, simulate_calls,
    simulate_windowed_calls,
};
pub use report::{CacheReport, MarkerReport};
pub use rules::CacheRules;
pub use sent_history::{Prefix, SentHistory};
