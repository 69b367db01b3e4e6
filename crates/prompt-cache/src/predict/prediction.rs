//! What one call will read and write, from what the call before left in the cache.
//!
//! Time plays no part here: a prediction holds if the next call comes before the provider's cache entries
//! expire. [`CacheSimulator`](crate::CacheSimulator) takes the time into account.

use contexture_wire::CacheTtl;

use crate::cost::CacheUsage;
use crate::markers::{CacheMarker, CachedPrefix, blocks_between};
use crate::outline::SegmentList;
use crate::rules::CacheRules;

/// Predicts what a call will read and write if no cache entry has expired since the call before.
#[must_use]
pub fn predict_usage(
    outline: &impl SegmentList,
    rules: &CacheRules,
    markers: &[CacheMarker],
    previous: &[CachedPrefix],
) -> CacheUsage {
    // Only position and look-back are checked here: if a segment changed, the hash of the prefix differs below.
    let there = |kept: &&CachedPrefix| {
        kept.segment < outline.segment_count()
            && lookup_marker(outline, rules, markers, kept.segment).is_some()
    };
    let mut candidates: Vec<&CachedPrefix> = previous.iter().filter(there).collect();
    // Ascending, as prefix hashes are computed in one pass.
    candidates.sort_by_key(|kept| kept.segment);
    let segments: Vec<usize> = candidates.iter().map(|kept| kept.segment).collect();
    let prefixes = outline.prefix_hashes(&segments);
    let found = candidates.iter().zip(prefixes);
    let found = found
        .filter(|(kept, prefix)| kept.prefix == *prefix)
        .map(|(kept, _)| kept.segment);
    usage_for_prefix(outline, rules, markers, found.max())
}

/// Returns the segment of the last marker whose look-back reaches a prefix that was cached up to the end of `segment`;
/// `segment` itself if the provider needs no markers.
pub(crate) fn lookup_marker(
    outline: &impl SegmentList,
    rules: &CacheRules,
    markers: &[CacheMarker],
    segment: usize,
) -> Option<usize> {
    if !rules.is_marker_based() {
        return Some(segment);
    }
    let reaches_segment = |marker: &&CacheMarker| {
        let near = rules
            .lookback
            .is_none_or(|most| blocks_between(outline, segment, marker.segment) < most);
        marker.segment >= segment && near
    };
    markers
        .iter()
        .rev()
        .find(reaches_segment)
        .map(|marker| marker.segment)
}

/// Returns the usage of a call whose prefix up to the segment `found` is in the cache; `None`: nothing of it is.
pub(crate) fn usage_for_prefix(
    outline: &impl SegmentList,
    rules: &CacheRules,
    markers: &[CacheMarker],
    found: Option<usize>,
) -> CacheUsage {
    let count = outline.segment_count();
    let all = outline.totals(0..count).tokens;
    let tokens_up_to = |at: usize| match at < count {
        true => outline.totals(0..at + 1).tokens,
        false => 0,
    };
    // OpenAI caches in steps of so many tokens; a step of 1 changes nothing.
    let stepped = |tokens: u64| tokens / rules.step * rules.step;
    let read = found.map_or(0, |at| stepped(tokens_up_to(at)));
    // A prefix below the minimum was never cached.
    let read = if read >= rules.minimum { read } else { 0 };
    if !rules.is_marker_based() {
        return CacheUsage {
            read,
            fresh: all - read,
            ..CacheUsage::default()
        };
    }
    let last = |ttl| last_marked_tokens(markers, ttl, rules.minimum, tokens_up_to).max(read);
    // Anthropic bills tokens up to the last marker with the long TTL at the long rate, and those from there to the last
    // marker at the usual rate.
    let (long, end) = (last(Some(CacheTtl::Long)), last(None));
    CacheUsage {
        read,
        write_long: long - read,
        write: end.saturating_sub(long),
        fresh: all - end,
    }
}

/// Counts the tokens up to the last marker with this TTL (`None`: with any) whose prefix is long enough to be cached.
fn last_marked_tokens(
    markers: &[CacheMarker],
    ttl: Option<CacheTtl>,
    minimum: u64,
    tokens_up_to: impl Fn(usize) -> u64,
) -> u64 {
    let of = |marker: &&CacheMarker| ttl.is_none_or(|ttl| marker.ttl == ttl);
    let ends = markers
        .iter()
        .filter(of)
        .map(|marker| tokens_up_to(marker.segment));
    let enough = ends.filter(|tokens| *tokens >= minimum);
    enough.max().unwrap_or(0)
}
