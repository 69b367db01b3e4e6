//! Where marks go.
//!
//! Up to four matter: the *head* ends tools and system prompt, the *anchor* ends what stands before
//! the history, the *rolling* mark ends the history and moves with it, and where more blocks were added
//! than the provider looks back, the *bridge* stands where the rolling mark of the last call stood, so
//! that what it wrote is found. Nothing behind the history is ever marked: it is not there next time.
//!
//! Marks that came with the items stay and count. Where they are more than the provider takes, those
//! in the oldest messages go; a longer time never stands behind a shorter one.

use std::collections::BTreeSet;

use contexture_ir::{ContentHash, Fields, quote};
use contexture_wire::{Format, Ttl};
use serde::{Deserialize, Serialize};

use crate::cache::outline::{Lasts, Outline, Part};
use crate::cache::rules::CacheRules;
use crate::cache::settings::value;
use crate::hex;

/// For how long what is marked is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkPolicy {
    /// Tools, system prompt and anchors.
    pub head: Ttl,
    /// The history.
    pub history: Ttl,
}

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// The segment whose end it marks.
    pub segment: usize,
    /// For how long.
    pub ttl: Ttl,
    /// Why it stands there.
    pub why: MarkReason,
}

impl Mark {
    /// A mark that was there before.
    #[must_use]
    pub const fn given(segment: usize, ttl: Ttl) -> Self {
        Self {
            segment,
            ttl,
            why: MarkReason::Given,
        }
    }
}

/// Why a mark stands where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MarkReason {
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

/// The marks of one payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Marking {
    /// All marks that will be in force, in the order of their segments.
    pub marks: Vec<Mark>,
    /// The segments whose own marks have to go, because there would be too many.
    pub strip: Vec<usize>,
    /// Whether the provider must be told to set no mark by itself: what it would mark is not there
    /// next time.
    pub only_ours: bool,
    /// The prefixes that can be read from the cache after this call, shortest first.
    pub kept: Vec<Kept>,
}

impl Marking {
    /// Only the marks that came with the items, as many as the provider takes.
    pub(crate) fn given(outline: &Outline, rules: &CacheRules) -> Self {
        if rules.max_marks == 0 {
            return Self {
                kept: kept(outline, rules, &[]),
                ..Self::default()
            };
        }
        let (marks, strip) = given(outline, rules);
        Self {
            kept: kept(outline, rules, &marks),
            marks,
            strip,
            only_ours: false,
        }
    }
}

/// A prefix that the provider is expected to keep. It goes from one compile to the next with the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its last segment.
    pub segment: usize,
    /// The hash over it, by which a plan of another path is noticed.
    #[serde(with = "hex")]
    pub prefix: ContentHash,
    /// For how long.
    #[serde(default)]
    pub ttl: Ttl,
}

/// Decides the marks of a payload. `previous` is what the call before left in the cache.
///
/// The same arguments give the same marks; an extended history moves none but the rolling one and its
/// bridge.
#[must_use]
pub fn place_marks(
    outline: &Outline,
    rules: &CacheRules,
    previous: &[Kept],
    policy: MarkPolicy,
) -> Marking {
    let mut marking = Marking::default();
    if rules.max_marks > 0 {
        let (given, strip) = given(outline, rules);
        let passing = outline.segments.iter().any(|one| one.lasts == Lasts::Call);
        marking.only_ours = rules.marks_newest && passing;
        let newest = rules.marks_newest && !passing;
        let taken = given.len() + usize::from(newest) + usize::from(outline.whole.is_some());
        let mut ours: Vec<Mark> = Vec::new();
        let slots = rules.max_marks.saturating_sub(taken);
        for mark in wanted(outline, rules, previous, policy, newest) {
            let stands = given
                .iter()
                .chain(&ours)
                .any(|one| one.segment == mark.segment);
            if ours.len() < slots && !stands {
                ours.push(mark);
            }
        }
        marking.strip = strip;
        marking.marks = given.into_iter().chain(ours).collect();
        let last = outline.segments.len().checked_sub(1);
        let provider = |ttl| {
            last.map(|segment| Mark {
                segment,
                ttl,
                why: MarkReason::Provider,
            })
        };
        marking
            .marks
            .extend(newest.then(|| provider(Ttl::Usual)).flatten());
        marking.marks.extend(outline.whole.and_then(provider));
        marking.marks.sort_by_key(|mark| mark.segment);
        settle_times(&mut marking.marks);
    }
    marking.kept = kept(outline, rules, &marking.marks);
    marking
}

/// The mark at the top of a request, which the provider moves by itself.
pub(crate) fn whole_mark(format: Format, fields: &Fields<'_>) -> Option<Ttl> {
    if format != Format::Anthropic {
        return None;
    }
    let mark = value(fields, &["cache_control", "type"]);
    let long = value(fields, &["cache_control", "ttl"]) == quote("1h");
    let ttl = if long { Ttl::Long } else { Ttl::Usual };
    (!mark.is_empty()).then_some(ttl)
}

/// The marks that are in force in a request that is sent as it stands: its own, as many as the provider takes, and
/// those that the provider sets by itself.
#[must_use]
pub fn marks_of(outline: &Outline, rules: &CacheRules) -> Vec<Mark> {
    if rules.max_marks == 0 {
        return Vec::new();
    }
    let (mut marks, _) = given(outline, rules);
    if let Some(segment) = outline.segments.len().checked_sub(1) {
        let newest = rules.marks_newest.then_some(Ttl::Usual);
        let provider = |ttl| Mark {
            segment,
            ttl,
            why: MarkReason::Provider,
        };
        marks.extend(outline.whole.into_iter().chain(newest).map(provider));
    }
    marks
}

/// The marks that came with the items and stay, and the segments whose marks go.
pub(crate) fn given(outline: &Outline, rules: &CacheRules) -> (Vec<Mark>, Vec<usize>) {
    let most = rules
        .max_marks
        .saturating_sub(usize::from(outline.whole.is_some()));
    let mut count: usize = outline.segments.iter().map(|one| one.marks.len()).sum();
    let mut strip = BTreeSet::new();
    // The oldest messages first, then whatever there is.
    for messages in [true, false] {
        for (at, segment) in outline.segments.iter().enumerate() {
            let own = (segment.part == Part::Messages) == messages;
            if own && count > most && !segment.marks.is_empty() {
                count -= segment.marks.len();
                strip.insert(at);
            }
        }
    }
    let stays = |at: &usize| !strip.contains(at);
    let all = outline.segments.iter().enumerate();
    let marks = all
        .filter(|(at, _)| stays(at))
        .flat_map(|(at, segment)| segment.marks.iter().map(move |ttl| Mark::given(at, *ttl)))
        .collect();
    (marks, strip.into_iter().collect())
}

/// Where marks are wanted, the most useful first.
fn wanted(
    outline: &Outline,
    rules: &CacheRules,
    previous: &[Kept],
    policy: MarkPolicy,
    newest: bool,
) -> Vec<Mark> {
    let reaches = reaching(outline, rules);
    let can =
        |segment: Option<usize>| segment.filter(|at| reaches.is_some_and(|least| *at >= least));
    let head = outline.last(Lasts::Epoch..=Lasts::Epoch, |one| {
        one.can_carry && one.part < Part::Messages
    });
    let anchor = outline.last(Lasts::Epoch..=Lasts::Epoch, |one| {
        one.can_carry && one.part == Part::Messages
    });
    let rolling = outline.last(Lasts::Onwards..=Lasts::Onwards, |one| one.can_carry);
    let bridge = rolling.and_then(|rolling| bridge(outline, rules, previous, rolling));
    let mark =
        |segment: Option<usize>, ttl, why| can(segment).map(|segment| Mark { segment, ttl, why });
    [
        mark(
            rolling.filter(|_| !newest),
            policy.history,
            MarkReason::Rolling,
        ),
        mark(head, policy.head, MarkReason::Head),
        mark(bridge, policy.history, MarkReason::Bridge),
        mark(anchor, policy.head, MarkReason::Anchor),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first segment at whose end the prefix may be long enough to be cached.
fn reaching(outline: &Outline, rules: &CacheRules) -> Option<usize> {
    let mut sum = 0_u64;
    outline.segments.iter().position(|segment| {
        sum = sum.saturating_add(segment.tokens.high);
        sum >= rules.minimum
    })
}

/// Where the last call's longest prefix ended that still stands, if it is out of the rolling mark's
/// sight.
fn bridge(
    outline: &Outline,
    rules: &CacheRules,
    previous: &[Kept],
    rolling: usize,
) -> Option<usize> {
    let lookback = rules.lookback?;
    let onwards = |at: usize| {
        let segment = outline.segments.get(at);
        segment.is_some_and(|one| one.lasts == Lasts::Onwards && one.can_carry)
    };
    let before = previous
        .iter()
        .rev()
        .map(|kept| (kept.segment, kept.prefix));
    let (at, _) = before
        .filter(|(at, _)| *at < rolling && onwards(*at))
        .find(|(at, prefix)| outline.prefix(*at) == *prefix)?;
    (blocks_between(outline, at, rolling) >= lookback).then_some(at)
}

/// How many content blocks stand behind one segment up to another.
pub(crate) fn blocks_between(outline: &Outline, from: usize, to: usize) -> usize {
    let between = outline.segments.get(from + 1..to + 1).unwrap_or_default();
    between.iter().map(|segment| segment.blocks).sum()
}

/// A longer time may not stand behind a shorter one: ours give way to those that came with the items.
fn settle_times(marks: &mut [Mark]) {
    let mut most = Ttl::Long;
    for mark in marks.iter_mut() {
        match mark.why {
            MarkReason::Given => most = most.min(mark.ttl),
            _ => mark.ttl = mark.ttl.min(most),
        }
    }
    let mut least = Ttl::Usual;
    for mark in marks.iter_mut().rev() {
        mark.ttl = match mark.why {
            MarkReason::Given => mark.ttl,
            _ => mark.ttl.max(least),
        };
        least = least.max(mark.ttl);
    }
}

/// The prefixes that the provider keeps after this call.
fn kept(outline: &Outline, rules: &CacheRules, marks: &[Mark]) -> Vec<Kept> {
    let sums = outline.cumulated();
    let long_enough = |at: &usize| sums.get(*at).is_some_and(|sum| *sum >= rules.minimum);
    let ends: Vec<(usize, Ttl)> = if rules.by_marks() {
        marks.iter().map(|mark| (mark.segment, mark.ttl)).collect()
    } else {
        // A provider that caches by itself keeps every beginning; these are the ones that can return.
        let lasting = [
            outline.last(Lasts::Epoch..=Lasts::Epoch, |one| one.part < Part::Messages),
            outline.last(Lasts::Epoch..=Lasts::Epoch, |_| true),
            outline.last(Lasts::Epoch..=Lasts::Onwards, |_| true),
            outline.last(Lasts::Epoch..=Lasts::Call, |_| true),
        ];
        let mut lasting: Vec<(usize, Ttl)> = lasting
            .into_iter()
            .flatten()
            .map(|at| (at, Ttl::Usual))
            .collect();
        lasting.dedup();
        lasting
    };
    if rules.kind == contexture_catalogue::CacheKind::None {
        return Vec::new();
    }
    let mut ends: Vec<(usize, Ttl)> = ends.into_iter().filter(|(at, _)| long_enough(at)).collect();
    ends.dedup_by_key(|(segment, _)| *segment);
    let prefixes = outline.prefixes(ends.iter().map(|(segment, _)| *segment));
    let kept = ends.into_iter().zip(prefixes);
    kept.map(|((segment, ttl), prefix)| Kept {
        segment,
        prefix,
        ttl,
    })
    .collect()
}
