//! What one call will read and write, from what the call before left in the cache.
//!
//! The provider's clock is not known here: a prediction holds if the next call comes before what was
//! kept is forgotten. [`CacheSimulator`](crate::CacheSimulator) takes the time into account.

use contexture_wire::CacheTtl;

use crate::cost::CacheUsage;
use crate::markers::{CacheMarker, CachedPrefix, blocks_between};
use crate::outline::Outline;
use crate::rules::CacheRules;

/// What a call will read and write if nothing was forgotten since the call before.
#[must_use]
pub fn predict_usage(
    outline: &Outline,
    rules: &CacheRules,
    marks: &[CacheMarker],
    previous: &[CachedPrefix],
) -> CacheUsage {
    // A prefix over segments that changed has another hash, whatever their order.
    let there = |kept: &&CachedPrefix| {
        kept.segment < outline.segments.len()
            && lookup_marker(outline, rules, marks, kept.segment).is_some()
    };
    let mut candidates: Vec<&CachedPrefix> = previous.iter().filter(there).collect();
    // Ascending, as prefix hashes are computed in one pass.
    candidates.sort_by_key(|kept| kept.segment);
    let prefixes = outline.prefix_hashes(candidates.iter().map(|kept| kept.segment));
    let found = candidates.iter().zip(prefixes);
    let found = found
        .filter(|(kept, prefix)| kept.prefix == *prefix)
        .map(|(kept, _)| kept.segment);
    usage_for_prefix(outline, rules, marks, found.max())
}

/// The last mark from which the provider finds what was written up to the end of a segment, or that
/// segment itself where no mark is needed.
pub(crate) fn lookup_marker(
    outline: &Outline,
    rules: &CacheRules,
    marks: &[CacheMarker],
    segment: usize,
) -> Option<usize> {
    if !rules.is_marker_based() {
        return Some(segment);
    }
    let sees = |mark: &&CacheMarker| {
        let near = rules
            .lookback
            .is_none_or(|most| blocks_between(outline, segment, mark.segment) < most);
        mark.segment >= segment && near
    };
    marks.iter().rev().find(sees).map(|mark| mark.segment)
}

/// The tokens of a call that finds a prefix up to a segment.
pub(crate) fn usage_for_prefix(
    outline: &Outline,
    rules: &CacheRules,
    marks: &[CacheMarker],
    found: Option<usize>,
) -> CacheUsage {
    let sums = outline.cumulative_tokens();
    let upto = |at: usize| sums.get(at).copied().unwrap_or(0);
    // OpenAI reads in steps; a step of 1 changes nothing.
    let stepped = |tokens: u64| tokens / rules.step * rules.step;
    let read = found.map_or(0, |at| stepped(upto(at)));
    // Below the minimum a prefix was never written.
    let read = if read >= rules.minimum { read } else { 0 };
    if !rules.is_marker_based() {
        return CacheUsage {
            read,
            fresh: outline.tokens() - read,
            ..CacheUsage::default()
        };
    }
    let last = |ttl| last_marked_tokens(marks, ttl, rules.minimum, upto).max(read);
    // Anthropic bills up to the last long mark as long, from there to the last mark as usual.
    let (long, end) = (last(Some(CacheTtl::Long)), last(None));
    CacheUsage {
        read,
        write_long: long - read,
        write: end.saturating_sub(long),
        fresh: outline.tokens() - end,
    }
}

/// The tokens up to the last marker of a time, or of any, that ends enough to be cached.
fn last_marked_tokens(
    marks: &[CacheMarker],
    ttl: Option<CacheTtl>,
    minimum: u64,
    upto: impl Fn(usize) -> u64,
) -> u64 {
    let of = |mark: &&CacheMarker| ttl.is_none_or(|ttl| mark.ttl == ttl);
    let ends = marks.iter().filter(of).map(|mark| upto(mark.segment));
    let enough = ends.filter(|tokens| *tokens >= minimum);
    enough.max().unwrap_or(0)
}
