//! A provider's cache, simulated call by call.
//!
//! What it keeps is decided by the [`CacheRules`] alone; it is sequential, never evicts for want of
//! room, and finds whatever was written before. Tokens are best guesses, so money is compared, not
//! predicted to the cent.

use std::collections::BTreeMap;

use contexture_catalogue::CacheKind;
use contexture_ir::ContentHash;
use contexture_tokens::TokenCounter;
use contexture_wire::{CacheTtl, Format};

use crate::cost::CacheUsage;
use crate::markers::{CacheMarker, MarkerPolicy, active_markers, place_markers};
use crate::outline::{Outline, OutlineError};
use crate::predict::prediction::{lookup_marker, usage_for_prefix};
use crate::rules::CacheRules;

/// What a provider keeps of the requests it was sent.
#[derive(Clone, Debug)]
pub struct CacheSimulator {
    rules: CacheRules,
    prefixes: BTreeMap<ContentHash, SimulatedPrefix>,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedPrefix {
    ttl: CacheTtl,
    /// The first millisecond at which it is gone.
    expires_ms: u64,
}

/// One call of a session that is replayed.
#[derive(Clone, Debug)]
pub struct TracedCall {
    /// What is sent.
    pub outline: Outline,
    /// When, in milliseconds from any beginning.
    pub at_ms: u64,
}

impl CacheSimulator {
    /// An empty cache.
    #[must_use]
    pub const fn new(rules: CacheRules) -> Self {
        Self {
            rules,
            prefixes: BTreeMap::new(),
        }
    }

    /// What a call would read and write; the cache stays as it is.
    #[must_use]
    pub fn predict_usage(
        &self,
        outline: &Outline,
        markers: &[CacheMarker],
        now_ms: u64,
    ) -> CacheUsage {
        self.find_cached_prefix(outline, markers, now_ms, &segment_prefix_hashes(outline))
            .1
    }

    /// What a call reads and writes; the cache is as it leaves it.
    pub fn record_call(
        &mut self,
        outline: &Outline,
        markers: &[CacheMarker],
        now_ms: u64,
    ) -> CacheUsage {
        // Dropped when they expire, so a long session does not keep every prefix it ever had.
        self.prefixes.retain(|_, entry| now_ms < entry.expires_ms);
        let prefixes = segment_prefix_hashes(outline);
        let (found, used) = self.find_cached_prefix(outline, markers, now_ms, &prefixes);
        if self.rules.kind == CacheKind::None {
            return used;
        }
        if self.rules.is_marker_based() {
            let read = found.filter(|_| used.read > 0);
            self.store_marked_prefixes(outline, markers, &prefixes, read, now_ms);
        } else {
            // A cache without markers keeps every beginning.
            for prefix in &prefixes {
                self.store_prefix(Some(prefix), CacheTtl::Usual, now_ms);
            }
        }
        used
    }

    /// Writes what the markers end, and keeps anew what was read.
    fn store_marked_prefixes(
        &mut self,
        outline: &Outline,
        markers: &[CacheMarker],
        prefixes: &[ContentHash],
        read: Option<usize>,
        now_ms: u64,
    ) {
        // Reading refreshes what was read, free of charge.
        let read = read.map(|at| (at, CacheTtl::Usual));
        let written = markers.iter().map(|marker| (marker.segment, marker.ttl));
        let sums = outline.cumulative_tokens();
        let enough = |(at, _): &(usize, CacheTtl)| {
            sums.get(*at).is_some_and(|sum| *sum >= self.rules.minimum)
        };
        let ends: Vec<_> = read.into_iter().chain(written).filter(enough).collect();
        for (at, ttl) in ends {
            self.store_prefix(prefixes.get(at), ttl, now_ms);
        }
    }

    /// How many prefixes it keeps.
    #[must_use]
    pub fn prefix_count(&self) -> usize {
        self.prefixes.len()
    }

    /// The segment up to which a call finds a prefix, and what follows from that.
    fn find_cached_prefix(
        &self,
        outline: &Outline,
        markers: &[CacheMarker],
        now_ms: u64,
        prefixes: &[ContentHash],
    ) -> (Option<usize>, CacheUsage) {
        if self.rules.kind == CacheKind::None {
            let none = CacheRules::none(self.rules.format);
            return (None, usage_for_prefix(outline, &none, &[], None));
        }
        let found = (0..prefixes.len())
            .rev()
            .filter(|at| self.is_alive(prefixes.get(*at), now_ms))
            .find(|at| lookup_marker(outline, &self.rules, markers, *at).is_some());
        (
            found,
            usage_for_prefix(outline, &self.rules, markers, found),
        )
    }

    fn is_alive(&self, prefix: Option<&ContentHash>, now_ms: u64) -> bool {
        let entry = prefix.and_then(|prefix| self.prefixes.get(prefix));
        entry.is_some_and(|entry| now_ms < entry.expires_ms)
    }

    /// Writes a prefix, or keeps it anew for as long as it was written for.
    fn store_prefix(&mut self, prefix: Option<&ContentHash>, ttl: CacheTtl, now_ms: u64) {
        let Some(prefix) = prefix else { return };
        let known = self
            .prefixes
            .get(prefix)
            .filter(|entry| now_ms < entry.expires_ms);
        // A shorter marker on a prefix that was written for longer does not shorten its time.
        let ttl = known.map_or(ttl, |entry| entry.ttl.max(ttl));
        let gone_ms = now_ms.saturating_add(self.rules.ttl_ms(ttl));
        // Calls may be told in another order than they were sent in.
        let gone_ms = known.map_or(gone_ms, |entry| entry.expires_ms.max(gone_ms));
        self.prefixes.insert(
            *prefix,
            SimulatedPrefix {
                ttl,
                expires_ms: gone_ms,
            },
        );
    }
}

/// The hash over everything up to and including each segment.
fn segment_prefix_hashes(outline: &Outline) -> Vec<ContentHash> {
    let mut hash = ContentHash::of(outline.scope.as_bytes());
    let next = |segment: &crate::outline::OutlineSegment| {
        let mut bytes = [0; 32];
        let both = hash.as_bytes().iter().chain(segment.hash.as_bytes());
        bytes
            .iter_mut()
            .zip(both)
            .for_each(|(to, from)| *to = *from);
        hash = ContentHash::of(&bytes);
        hash
    };
    outline.segments.iter().map(next).collect()
}

/// Predicts what `next` reads and writes, if `sent` was answered just before and nothing else is in the cache. Both are
/// requests as they are sent, with the markers that stand in them.
///
/// # Errors
/// [`OutlineError`]: one of them is no request of the format.
pub fn predict_continued(
    format: Format,
    (sent, next): (&str, &str),
    rules: &CacheRules,
    counter: &dyn TokenCounter,
) -> Result<CacheUsage, OutlineError> {
    let sent = Outline::parse_request(format, sent, counter)?;
    let next = Outline::parse_request(format, next, counter)?;
    let mut cache = CacheSimulator::new(rules.clone());
    cache.record_call(&sent, &active_markers(&sent, rules), 0);
    Ok(cache.predict_usage(&next, &active_markers(&next, rules), 0))
}

/// A whole session, call by call, with markers placed for each call. Gives what each one reads and writes.
///
/// With outlines that hold the whole history this is what a host pays that sends everything.
#[must_use]
pub fn simulate_calls(
    rules: &CacheRules,
    policy: MarkerPolicy,
    calls: impl IntoIterator<Item = TracedCall>,
) -> Vec<CacheUsage> {
    let mut trace = CacheSimulator::new(rules.clone());
    let mut kept = Vec::new();
    let step = |call: TracedCall| {
        let plan = place_markers(&call.outline, rules, &kept, policy);
        kept = plan.cached_prefixes;
        trace.record_call(&call.outline, &plan.markers, call.at_ms)
    };
    calls.into_iter().map(step).collect()
}

/// The same for a host that drops the oldest messages of every call until it fits into `limit` tokens.
#[must_use]
pub fn simulate_windowed_calls(
    rules: &CacheRules,
    policy: MarkerPolicy,
    limit: u64,
    calls: impl IntoIterator<Item = TracedCall>,
) -> Vec<CacheUsage> {
    let windowed = calls.into_iter().map(|call| TracedCall {
        outline: call.outline.without_oldest_messages(limit),
        ..call
    });
    simulate_calls(rules, policy, windowed)
}
