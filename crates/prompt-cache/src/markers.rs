//! Where markers go.
//!
//! Up to four matter: the *head* ends tools and system prompt, the *anchor* ends what stands before
//! the history, the *rolling* marker ends the history and moves with it, and where more blocks were added
//! than the provider looks back, the *bridge* stands where the rolling marker of the last call stood, so
//! that what it wrote is found. Nothing behind the history is ever marked: it is not there next time.
//!
//! Markers that came with the items stay and count. Where they are more than the provider takes, those
//! in the oldest messages go; a longer time never stands behind a shorter one.

use std::borrow::Cow;
use std::collections::BTreeSet;

use contexture_ir::ContentHash;
use contexture_wire::{CacheTtl, RequestPart};
use serde::{Deserialize, Serialize};

use crate::outline::{OutlineSegment, SegmentList, SegmentStability};
use crate::rules::CacheRules;

/// For how long what is marked is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkerPolicy {
    /// Tools, system prompt and anchors.
    pub head: CacheTtl,
    /// Lifetime of the markers in the history.
    pub history: CacheTtl,
}

/// A cache marker to be set in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheMarker {
    /// The segment whose end it marks.
    pub segment: usize,
    /// For how long.
    pub ttl: CacheTtl,
    /// Why it stands there.
    pub reason: MarkerReason,
}

impl CacheMarker {
    /// A marker that was there before.
    #[must_use]
    pub const fn existing(segment: usize, ttl: CacheTtl) -> Self {
        Self {
            segment,
            ttl,
            reason: MarkerReason::Given,
        }
    }
}

/// Why a marker stands where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MarkerReason {
    /// The end of tools and system prompt.
    Head,
    /// The end of what stands before the history.
    Anchor,
    /// Where the history ended in the call before: the end of this one is too far from it.
    Bridge,
    /// The end of the history.
    Rolling,
    /// It came with the items.
    Given,
    /// The provider sets it by itself.
    Provider,
}

/// The markers of one payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkerPlan {
    /// All markers that will be in force, in the order of their segments.
    pub markers: Vec<CacheMarker>,
    /// The segments whose own markers have to go, because there would be too many.
    pub strip: Vec<usize>,
    /// Whether the provider must be told to set no marker by itself: what it would mark is not there
    /// next time.
    pub only_ours: bool,
    /// The prefixes that can be read from the cache after this call, shortest first.
    pub cached_prefixes: Vec<CachedPrefix>,
}

impl MarkerPlan {
    /// Only the markers that came with the items, as many as the provider takes.
    #[must_use]
    pub fn from_existing(outline: &impl SegmentList, rules: &CacheRules) -> Self {
        if rules.max_markers == 0 {
            return Self {
                cached_prefixes: cached_prefixes(outline, rules, &[]),
                ..Self::default()
            };
        }
        let (markers, strip) = existing_markers(outline, rules);
        Self {
            cached_prefixes: cached_prefixes(outline, rules, &markers),
            markers,
            strip,
            only_ours: false,
        }
    }
}

/// A prefix that the provider is expected to keep. It goes from one compile to the next with the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedPrefix {
    /// Its last segment.
    pub segment: usize,
    /// The hash over it, by which a plan of another path is noticed.
    #[serde(with = "contexture_ir::hex")]
    pub prefix: ContentHash,
    /// For how long.
    #[serde(default)]
    pub ttl: CacheTtl,
}

/// Decides the markers of a payload. `previous` is what the call before left in the cache.
///
/// The same arguments give the same markers; an extended history moves none but the rolling one and its
/// bridge.
#[must_use]
pub fn place_markers(
    outline: &impl SegmentList,
    rules: &CacheRules,
    previous: &[CachedPrefix],
    policy: MarkerPolicy,
) -> MarkerPlan {
    let mut plan = MarkerPlan::default();
    if rules.max_markers > 0 {
        // Markers of the caller come first: they are part of what was asked for.
        let (given, strip) = existing_markers(outline, rules);
        let passing =
            outline.last_segment_where(SegmentStability::Call..=SegmentStability::Call, &|_| true);
        let passing = passing.is_some();
        plan.only_ours = rules.marks_newest && passing;
        // What stands behind the history is gone in the next call: a marker there would write a prefix
        // that is never read.
        let newest = rules.marks_newest && !passing;
        let taken =
            given.len() + usize::from(newest) + usize::from(outline.whole_marker().is_some());
        let mut ours: Vec<CacheMarker> = Vec::new();
        let slots = rules.max_markers.saturating_sub(taken);
        // Most useful first, so that a provider with fewer slots loses the least.
        for marker in desired_markers(outline, rules, previous, policy, newest) {
            let stands = given
                .iter()
                .chain(&ours)
                .any(|one| one.segment == marker.segment);
            if ours.len() < slots && !stands {
                ours.push(marker);
            }
        }
        plan.strip = strip;
        plan.markers = given.into_iter().chain(ours).collect();
        let last = outline.segment_count().checked_sub(1);
        let provider = |ttl| {
            last.map(|segment| CacheMarker {
                segment,
                ttl,
                reason: MarkerReason::Provider,
            })
        };
        plan.markers
            .extend(newest.then(|| provider(CacheTtl::Usual)).flatten());
        plan.markers
            .extend(outline.whole_marker().and_then(provider));
        plan.markers.sort_by_key(|marker| marker.segment);
        // In payload order, as the rule is about order; Anthropic refuses a longer time behind a
        // shorter one.
        enforce_ttl_order(&mut plan.markers);
    }
    plan.cached_prefixes = cached_prefixes(outline, rules, &plan.markers);
    plan
}

/// The markers that are in force in a request that is sent as it stands: its own, as many as the provider takes, and
/// those that the provider sets by itself.
#[must_use]
pub fn active_markers(outline: &impl SegmentList, rules: &CacheRules) -> Vec<CacheMarker> {
    if rules.max_markers == 0 {
        return Vec::new();
    }
    let (mut markers, _) = existing_markers(outline, rules);
    if let Some(segment) = outline.segment_count().checked_sub(1) {
        let newest = rules.marks_newest.then_some(CacheTtl::Usual);
        let provider = |ttl| CacheMarker {
            segment,
            ttl,
            reason: MarkerReason::Provider,
        };
        markers.extend(
            outline
                .whole_marker()
                .into_iter()
                .chain(newest)
                .map(provider),
        );
    }
    markers
}

/// The markers that came with the items and stay, and the segments whose markers go.
pub(crate) fn existing_markers(
    outline: &impl SegmentList,
    rules: &CacheRules,
) -> (Vec<CacheMarker>, Vec<usize>) {
    let most = rules
        .max_markers
        .saturating_sub(usize::from(outline.whole_marker().is_some()));
    let marked = outline.marked_segments().into_iter();
    let marked: Vec<(usize, Cow<'_, OutlineSegment>)> = marked
        .filter_map(|at| Some((at, outline.segment(at)?)))
        .collect();
    let strip = surplus_marked_segments(&marked, most);
    let stays = |at: &usize| !strip.contains(at);
    let markers = marked
        .iter()
        .filter(|(at, _)| stays(at))
        .flat_map(|(at, segment)| {
            segment
                .markers
                .iter()
                .map(move |ttl| CacheMarker::existing(*at, *ttl))
        })
        .collect();
    (markers, strip.into_iter().collect())
}

/// The segments that lose their markers so that at most `most` are left.
fn surplus_marked_segments(
    marked: &[(usize, Cow<'_, OutlineSegment>)],
    most: usize,
) -> BTreeSet<usize> {
    let mut count: usize = marked.iter().map(|(_, one)| one.markers.len()).sum();
    let mut strip = BTreeSet::new();
    // The oldest messages first, then whatever there is.
    for messages in [true, false] {
        for (at, segment) in marked {
            let own = (segment.part == RequestPart::Messages) == messages;
            if own && count > most {
                count -= segment.markers.len();
                strip.insert(*at);
            }
        }
    }
    strip
}

/// Where markers are wanted, the most useful first.
fn desired_markers(
    outline: &impl SegmentList,
    rules: &CacheRules,
    previous: &[CachedPrefix],
    policy: MarkerPolicy,
    newest: bool,
) -> Vec<CacheMarker> {
    let reaches = first_cacheable_segment(outline, rules);
    let can =
        |segment: Option<usize>| segment.filter(|at| reaches.is_some_and(|least| *at >= least));
    // Among what lasts for the epoch the head and the anchor are marked apart: instructions change
    // less often than what is anchored.
    let head = outline
        .last_segment_where(SegmentStability::Epoch..=SegmentStability::Epoch, &|one| {
            one.can_carry && one.part < RequestPart::Messages
        });
    let anchor = outline
        .last_segment_where(SegmentStability::Epoch..=SegmentStability::Epoch, &|one| {
            one.can_carry && one.part == RequestPart::Messages
        });
    let rolling = outline.last_segment_where(
        SegmentStability::Onwards..=SegmentStability::Onwards,
        &|one| one.can_carry,
    );
    let bridge = rolling.and_then(|rolling| bridge_segment(outline, rules, previous, rolling));
    let marker = |segment: Option<usize>, ttl, why| {
        can(segment).map(|segment| CacheMarker {
            segment,
            ttl,
            reason: why,
        })
    };
    [
        marker(
            rolling.filter(|_| !newest),
            policy.history,
            MarkerReason::Rolling,
        ),
        marker(head, policy.head, MarkerReason::Head),
        marker(bridge, policy.history, MarkerReason::Bridge),
        marker(anchor, policy.head, MarkerReason::Anchor),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first segment at whose end the prefix may be long enough to be cached.
fn first_cacheable_segment(outline: &impl SegmentList, rules: &CacheRules) -> Option<usize> {
    let mut sum = 0_u64;
    (0..outline.segment_count()).find(|at| {
        // The high bound: a marker that turns out to be too early costs nothing, a missing one costs
        // the whole cache.
        let tokens = outline.segment(*at).map_or(0, |one| one.tokens.high);
        sum = sum.saturating_add(tokens);
        sum >= rules.minimum
    })
}

/// Where the last call's longest prefix ended that still stands, if it is out of the rolling marker's
/// sight.
fn bridge_segment(
    outline: &impl SegmentList,
    rules: &CacheRules,
    previous: &[CachedPrefix],
    rolling: usize,
) -> Option<usize> {
    // Without a limit of looking back the provider finds the old end by itself.
    let lookback = rules.lookback?;
    let onwards = |at: usize| {
        let segment = outline.segment(at);
        segment.is_some_and(|one| one.stability == SegmentStability::Onwards && one.can_carry)
    };
    let before = previous
        .iter()
        .rev()
        .map(|kept| (kept.segment, kept.prefix));
    let (at, _) = before
        .filter(|(at, _)| *at < rolling && onwards(*at))
        // The longest first, and only one that is still the beginning of this request.
        .find(|(at, prefix)| outline.prefix_hashes(&[*at]) == [*prefix])?;
    (blocks_between(outline, at, rolling) >= lookback).then_some(at)
}

/// How many content blocks stand behind one segment up to another.
pub(crate) fn blocks_between(outline: &impl SegmentList, from: usize, to: usize) -> usize {
    let between = from.saturating_add(1)..to.saturating_add(1);
    outline.totals(between).blocks
}

/// A longer time may not stand behind a shorter one: ours give way to those that came with the items.
fn enforce_ttl_order(markers: &mut [CacheMarker]) {
    let mut most = CacheTtl::Long;
    for marker in markers.iter_mut() {
        match marker.reason {
            MarkerReason::Given => most = most.min(marker.ttl),
            _ => marker.ttl = marker.ttl.min(most),
        }
    }
    let mut least = CacheTtl::Usual;
    for marker in markers.iter_mut().rev() {
        marker.ttl = match marker.reason {
            MarkerReason::Given => marker.ttl,
            _ => marker.ttl.max(least),
        };
        least = least.max(marker.ttl);
    }
}

/// The ends of the beginnings that can come again, for a provider that caches without markers.
fn recurring_ends(outline: &impl SegmentList) -> Vec<(usize, CacheTtl)> {
    // A provider that caches by itself keeps every beginning; these are the ones that can return.
    let lasting = [
        outline.last_segment_where(SegmentStability::Epoch..=SegmentStability::Epoch, &|one| {
            one.part < RequestPart::Messages
        }),
        outline.last_segment_where(SegmentStability::Epoch..=SegmentStability::Epoch, &|_| true),
        outline.last_segment_where(SegmentStability::Epoch..=SegmentStability::Onwards, &|_| {
            true
        }),
        outline.last_segment_where(SegmentStability::Epoch..=SegmentStability::Call, &|_| true),
    ];
    let mut lasting: Vec<(usize, CacheTtl)> = lasting
        .into_iter()
        .flatten()
        .map(|at| (at, CacheTtl::Usual))
        .collect();
    lasting.dedup();
    lasting
}

/// The prefixes that the provider keeps after this call.
fn cached_prefixes(
    outline: &impl SegmentList,
    rules: &CacheRules,
    markers: &[CacheMarker],
) -> Vec<CachedPrefix> {
    let long_enough = |at: &usize| {
        *at < outline.segment_count() && outline.totals(0..*at + 1).tokens >= rules.minimum
    };
    let ends: Vec<(usize, CacheTtl)> = if rules.is_marker_based() {
        markers
            .iter()
            .map(|marker| (marker.segment, marker.ttl))
            .collect()
    } else {
        recurring_ends(outline)
    };
    if rules.kind == contexture_catalogue::CacheKind::None {
        return Vec::new();
    }
    let mut ends: Vec<(usize, CacheTtl)> =
        ends.into_iter().filter(|(at, _)| long_enough(at)).collect();
    ends.dedup_by_key(|(segment, _)| *segment);
    let segments: Vec<usize> = ends.iter().map(|(segment, _)| *segment).collect();
    let prefixes = outline.prefix_hashes(&segments);
    let kept = ends.into_iter().zip(prefixes);
    kept.map(|((segment, ttl), prefix)| CachedPrefix {
        segment,
        prefix,
        ttl,
    })
    .collect()
}
