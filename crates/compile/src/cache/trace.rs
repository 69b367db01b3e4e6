//! A provider's cache, simulated call by call.
//!
//! What it keeps is decided by the [`CacheRules`] alone; it is sequential, never evicts for want of
//! room, and finds whatever was written before. Tokens are best guesses, so money is compared, not
//! predicted to the cent.

use std::collections::BTreeMap;

use contexture_catalogue::CacheKind;
use contexture_ir::ContentHash;
use contexture_wire::Ttl;

use crate::cache::bill::CacheUse;
use crate::cache::marks::{Mark, MarkPolicy, place_marks};
use crate::cache::outline::Outline;
use crate::cache::predict::{found_by, usage};
use crate::cache::rules::CacheRules;

/// What a provider keeps of the requests it was sent.
#[derive(Clone, Debug)]
pub struct CacheTrace {
    rules: CacheRules,
    kept: BTreeMap<ContentHash, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    ttl: Ttl,
    /// The first millisecond at which it is gone.
    gone_ms: u64,
}

/// One call of a session that is replayed.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is sent.
    pub outline: Outline,
    /// When, in milliseconds from any beginning.
    pub at_ms: u64,
}

impl CacheTrace {
    /// An empty cache.
    #[must_use]
    pub const fn new(rules: CacheRules) -> Self {
        Self {
            rules,
            kept: BTreeMap::new(),
        }
    }

    /// What a call would read and write; the cache stays as it is.
    #[must_use]
    pub fn predict(&self, outline: &Outline, marks: &[Mark], now_ms: u64) -> CacheUse {
        self.find(outline, marks, now_ms, &prefixes(outline)).1
    }

    /// What a call reads and writes; the cache is as it leaves it.
    pub fn call(&mut self, outline: &Outline, marks: &[Mark], now_ms: u64) -> CacheUse {
        self.kept.retain(|_, entry| now_ms < entry.gone_ms);
        let prefixes = prefixes(outline);
        let (found, used) = self.find(outline, marks, now_ms, &prefixes);
        if self.rules.kind == CacheKind::None {
            return used;
        }
        if self.rules.by_marks() {
            let read = found.filter(|_| used.read > 0);
            let read = read.map(|at| (at, Ttl::Usual));
            let written = marks.iter().map(|mark| (mark.segment, mark.ttl));
            let sums = outline.cumulated();
            let enough = |(at, _): &(usize, Ttl)| {
                sums.get(*at).is_some_and(|sum| *sum >= self.rules.minimum)
            };
            let ends: Vec<_> = read.into_iter().chain(written).filter(enough).collect();
            for (at, ttl) in ends {
                self.keep(prefixes.get(at), ttl, now_ms);
            }
        } else {
            for prefix in &prefixes {
                self.keep(Some(prefix), Ttl::Usual, now_ms);
            }
        }
        used
    }

    /// How many prefixes it keeps.
    #[must_use]
    pub fn prefixes(&self) -> usize {
        self.kept.len()
    }

    /// The segment up to which a call finds a prefix, and what follows from that.
    fn find(
        &self,
        outline: &Outline,
        marks: &[Mark],
        now_ms: u64,
        prefixes: &[ContentHash],
    ) -> (Option<usize>, CacheUse) {
        if self.rules.kind == CacheKind::None {
            let none = CacheRules::none(self.rules.format);
            return (None, usage(outline, &none, &[], None));
        }
        let found = (0..prefixes.len())
            .rev()
            .filter(|at| self.alive(prefixes.get(*at), now_ms))
            .find(|at| found_by(outline, &self.rules, marks, *at).is_some());
        (found, usage(outline, &self.rules, marks, found))
    }

    fn alive(&self, prefix: Option<&ContentHash>, now_ms: u64) -> bool {
        let entry = prefix.and_then(|prefix| self.kept.get(prefix));
        entry.is_some_and(|entry| now_ms < entry.gone_ms)
    }

    /// Writes a prefix, or keeps it anew for as long as it was written for.
    fn keep(&mut self, prefix: Option<&ContentHash>, ttl: Ttl, now_ms: u64) {
        let Some(prefix) = prefix else { return };
        let known = self.kept.get(prefix).filter(|entry| now_ms < entry.gone_ms);
        let ttl = known.map_or(ttl, |entry| entry.ttl.max(ttl));
        let gone_ms = now_ms.saturating_add(self.rules.kept_ms(ttl));
        // Calls may be told in another order than they were sent in.
        let gone_ms = known.map_or(gone_ms, |entry| entry.gone_ms.max(gone_ms));
        self.kept.insert(*prefix, Entry { ttl, gone_ms });
    }
}

/// The hash over everything up to and including each segment.
fn prefixes(outline: &Outline) -> Vec<ContentHash> {
    let mut hash = ContentHash::of(outline.scope.as_bytes());
    let next = |segment: &crate::cache::outline::OutlineSegment| {
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

/// A whole session, call by call, with marks placed for each call. Gives what each one reads and writes.
///
/// With outlines that hold the whole history this is what a host pays that sends everything.
#[must_use]
pub fn replay(
    rules: &CacheRules,
    policy: MarkPolicy,
    calls: impl IntoIterator<Item = Call>,
) -> Vec<CacheUse> {
    let mut trace = CacheTrace::new(rules.clone());
    let mut kept = Vec::new();
    let step = |call: Call| {
        let marking = place_marks(&call.outline, rules, &kept, policy);
        kept = marking.kept;
        trace.call(&call.outline, &marking.marks, call.at_ms)
    };
    calls.into_iter().map(step).collect()
}

/// The same for a host that drops the oldest messages of every call until it fits into `limit` tokens.
#[must_use]
pub fn replay_windowed(
    rules: &CacheRules,
    policy: MarkPolicy,
    limit: u64,
    calls: impl IntoIterator<Item = Call>,
) -> Vec<CacheUse> {
    let windowed = calls.into_iter().map(|call| Call {
        outline: call.outline.window(limit),
        ..call
    });
    replay(rules, policy, windowed)
}
