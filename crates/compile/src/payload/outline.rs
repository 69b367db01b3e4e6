//! A payload as its provider's cache sees it.
//!
//! [`Payload::outline`] is for whoever asks: it lists every segment. The compile asks only for a few of them, for sums and for
//! hashes of beginnings; [`SplitOutline`] answers that from what is known of the shared part of the history, and gives what
//! the list would.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use contexture_ir::{ContentHash, Fields, concat_hashes, finish_content_hash};
use contexture_prompt_cache::{
    Outline, OutlineSegment, RequestPart, SegmentList, SegmentStability, SegmentTotals,
    automatic_marker, setting_value,
};
use contexture_tokens::TokenBounds;
use contexture_wire::{
    CacheTtl, Format, HeadPart, find_member, head_markers, remove_head_markers, remove_markers,
};

use crate::blocks::{Element, SharedElements};
use crate::growing::PrefixHashes;
use crate::payload::body::Payload;

/// What one segment of the outline is of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SegmentPosition {
    Head(HeadPart),
    Settings(RequestPart),
    Element(usize),
}

/// Where the segments of a payload are, in their order.
#[derive(Debug)]
pub(super) struct SegmentLayout {
    /// Before the elements.
    head: Vec<SegmentPosition>,
    /// How many elements are of the system prompt; settings stand behind them.
    lead: usize,
    settings: Option<SegmentPosition>,
    elements: usize,
}

impl SegmentLayout {
    /// What a segment is of.
    pub(super) fn position(&self, segment: usize) -> Option<SegmentPosition> {
        let Some(at) = segment.checked_sub(self.head.len()) else {
            return self.head.get(segment).copied();
        };
        let behind = at.checked_sub(self.lead);
        let element = match (behind, self.settings) {
            (Some(0), Some(settings)) => return Some(settings),
            (Some(_), Some(_)) => at - 1,
            _ => at,
        };
        (element < self.elements).then_some(SegmentPosition::Element(element))
    }

    /// How many segments are no elements.
    pub(super) fn head_count(&self) -> usize {
        self.head.len() + usize::from(self.settings.is_some())
    }

    fn len(&self) -> usize {
        self.head_count() + self.elements
    }
}

impl Payload {
    /// The payload as its provider's cache sees it: with what a cache object holds that it names. Messages have the marks
    /// that came with the items, and are known by the items: one that is marked in the next call is another.
    #[must_use]
    pub fn outline(&self) -> Outline {
        self.build_outline(segment_of)
    }

    /// The same as it is sent: with all marks that stand in it, and each message known by its text without them.
    #[must_use]
    pub fn outline_with_markers(&self) -> Outline {
        let format = self.head.format;
        self.build_outline(|at, element| {
            let marks: Vec<CacheTtl> = element
                .marks
                .iter()
                .copied()
                .chain(element.marked)
                .collect();
            let bare = match marks.is_empty() {
                true => None,
                false => remove_markers(format, &element.json),
            };
            // Compared without markers, as caches do.
            let text = bare.as_deref().unwrap_or(&element.json);
            let mut segment = segment_of(at, element);
            segment.hash = ContentHash::of(text.as_bytes());
            segment.markers = marks;
            segment
        })
    }

    fn build_outline(&self, segment_of: impl Fn(usize, &Element) -> OutlineSegment) -> Outline {
        // The cache holds what the object holds, so the outline is that of the full payload.
        if let Some(whole) = &self.full {
            return whole.build_outline(segment_of);
        }
        // The envelope without its array is a small object: parsing it does not touch the messages.
        let around = format!("{}{}", self.before, self.after);
        let fields = Fields::parse(&around).unwrap_or_default();
        let layout = self.segment_layout(&fields);
        let mut outline = self.empty_outline(&fields);
        outline.segments.reserve(layout.len());
        // The elements are asked for in their order: finding each by its number would cost a search.
        let mut elements = self.elements.iter().enumerate();
        outline.segments.extend(
            (0..layout.len()).filter_map(|at| match layout.position(at)? {
                SegmentPosition::Element(_) => {
                    elements.next().map(|(at, element)| segment_of(at, element))
                }
                position => Some(self.envelope_segment(position, &fields)),
            }),
        );
        self.add_head_tokens(&mut outline.segments);
        outline
    }

    /// The outline of an unmarked payload that shares elements of a history.
    pub(crate) fn split_outline<'a>(
        &self,
        shared: &'a SharedElements,
        hashes: &'a mut PrefixHashes,
    ) -> SplitOutline<'a> {
        let around = format!("{}{}", self.before, self.after);
        let fields = Fields::parse(&around).unwrap_or_default();
        let layout = self.segment_layout(&fields);
        let mut outline = self.empty_outline(&fields);
        let mut range = self.elements.shared_range();
        // What is not shared stands before or behind what is: behind it, numbers go on with those of what is shared.
        let (mut first, mut back) = (Vec::new(), Vec::new());
        for (at, element) in self.elements.own_elements() {
            match range.is_empty() || at == first.len() {
                true => first.push(segment_of(at, element)),
                false => back.push(segment_of(at, element)),
            }
        }
        // The first segment takes the tokens of the frame, so it is never a shared one.
        if layout.head_count() + first.len() == 0
            && let Some(element) = range.next().and_then(|at| shared.get(at))
        {
            first.push(segment_of(0, element));
        }
        let mut elements = first.into_iter();
        let positions = (0..).map_while(|at| layout.position(at));
        let mut front: Vec<OutlineSegment> = Vec::new();
        for position in positions {
            front.extend(match position {
                SegmentPosition::Element(_) => match elements.next() {
                    Some(segment) => Some(segment),
                    None => break,
                },
                position => Some(self.envelope_segment(position, &fields)),
            });
        }
        self.add_head_tokens(&mut front);
        let mut before = blake3::Hasher::new();
        before.update(ContentHash::of(outline.scope.as_bytes()).as_bytes());
        before.update(&concat_hashes(front.iter().map(|one| &one.hash)));
        hashes.follow(&before, range.start, range.len(), |at| {
            shared.get(range.start + at).map(|element| &element.hash)
        });
        outline.segments = front;
        SplitOutline {
            elements_before: outline.segments.len() - layout.head_count(),
            outline,
            shared,
            range,
            back,
            hashes,
            forbidden: BTreeSet::new(),
        }
    }

    /// An outline without segments yet.
    fn empty_outline(&self, fields: &Fields<'_>) -> Outline {
        let head = &*self.head;
        let mut scope = head.model.clone();
        for (name, _) in head.format.spec().cache_key().scopes {
            scope.push('\n');
            scope.push_str(setting_value(fields, &[name]));
        }
        Outline::new(head.format, scope, automatic_marker(head.format, fields))
    }

    /// Adds what stands around the elements and is no segment of its own to the first segments of its part.
    fn add_head_tokens(&self, segments: &mut [OutlineSegment]) {
        let head = &*self.head;
        let mut add = |part: Option<RequestPart>, tokens: TokenBounds| {
            let of = |one: &&mut OutlineSegment| part.is_none_or(|part| one.part == part);
            if let Some(first) = segments.iter_mut().find(of) {
                first.tokens += tokens;
            }
        };
        add(Some(RequestPart::Tools), head.tools);
        add(Some(RequestPart::System), head.system);
        add(None, head.framing);
    }

    /// Where the segments of the outline are.
    pub(super) fn segment_layout(&self, fields: &Fields<'_>) -> SegmentLayout {
        let format = self.head.format;
        let head = |part| head_value(format, fields, part).map(|_| SegmentPosition::Head(part));
        let set = format.spec().cache_key().settings;
        let group = |part: RequestPart| {
            set.iter()
                .any(|one| one.part == part)
                .then_some(SegmentPosition::Settings(part))
        };
        let lead = self
            .elements
            .iter()
            .take_while(|one| one.part == RequestPart::System);
        let tools = head(HeadPart::Tools);
        let form = group(RequestPart::Form);
        let before = [tools, form, head(HeadPart::System)];
        SegmentLayout {
            head: before.into_iter().flatten().collect(),
            lead: lead.count(),
            settings: group(RequestPart::Settings),
            elements: self.elements.len(),
        }
    }

    fn envelope_segment(&self, position: SegmentPosition, fields: &Fields<'_>) -> OutlineSegment {
        match position {
            SegmentPosition::Head(part) => self.head_segment(part, fields),
            SegmentPosition::Settings(part) => self.settings_segment(part, fields),
            SegmentPosition::Element(at) => {
                OutlineSegment::new(RequestPart::Messages, at, ContentHash::of(b""))
            }
        }
    }

    /// Tools or system prompt, which stand outside the elements.
    fn head_segment(&self, part: HeadPart, fields: &Fields<'_>) -> OutlineSegment {
        let format = self.head.format;
        let part_of = match part {
            HeadPart::Tools => RequestPart::Tools,
            HeadPart::System => RequestPart::System,
        };
        let text = head_value(format, fields, part).unwrap_or_default();
        let marks = head_markers(format, &self.before, part);
        let bare = (!marks.is_empty())
            .then(|| remove_head_markers(format, &self.before, part))
            .flatten()
            .and_then(|bare| head_text(format, &bare, part));
        let hash = ContentHash::of(bare.as_deref().unwrap_or(text).as_bytes());
        OutlineSegment {
            bytes: text.len(),
            blocks: block_count(text),
            can_carry: format.spec().structure().head_markers,
            markers: marks,
            ..OutlineSegment::new(part_of, 0, hash)
        }
    }

    /// All settings of a part as one segment: the diff tells which of them changed, not the outline.
    fn settings_segment(&self, part: RequestPart, fields: &Fields<'_>) -> OutlineSegment {
        let settings = self.head.format.spec().cache_key().settings.iter();
        let own = settings.filter(|one| one.part == part);
        let said: Vec<&str> = own.map(|one| setting_value(fields, one.path)).collect();
        OutlineSegment::new(part, 0, ContentHash::of(said.join("\n").as_bytes()))
    }
}

/// The outline of a payload in three parts: what stands before the elements that it shares with a history, those, and what
/// stands behind them.
#[derive(Debug)]
pub(crate) struct SplitOutline<'a> {
    /// With the segments of the first part.
    outline: Outline,
    /// How many of them are elements.
    elements_before: usize,
    shared: &'a SharedElements,
    /// Which of those.
    range: Range<usize>,
    back: Vec<OutlineSegment>,
    /// Over the first part and each beginning of the second.
    hashes: &'a PrefixHashes,
    /// The segments that turned out not to be able to carry a marker.
    forbidden: BTreeSet<usize>,
}

impl SplitOutline<'_> {
    /// Some segments turned out not to be able to carry a marker.
    pub(crate) fn forbid_markers(&mut self, segments: &[usize]) {
        self.forbidden.extend(segments);
    }

    /// The hash over everything up to and including a segment.
    pub(crate) fn prefix_hash(&self, segment: usize) -> ContentHash {
        finish_content_hash(&self.prefix_state(segment.saturating_add(1)))
    }

    /// The state of the hasher behind the first so many segments.
    fn prefix_state(&self, count: usize) -> blake3::Hasher {
        let front = &self.outline.segments;
        let Some(behind) = count.checked_sub(front.len()) else {
            let mut hasher = blake3::Hasher::new();
            hasher.update(ContentHash::of(self.outline.scope.as_bytes()).as_bytes());
            let own = front.get(..count).unwrap_or(front);
            hasher.update(&concat_hashes(own.iter().map(|one| &one.hash)));
            return hasher;
        };
        let mut state = self.hashes.state_after(behind.min(self.range.len()), |at| {
            let element = self.shared.get(self.range.start + at);
            element.map(|element| &element.hash)
        });
        let last = behind.saturating_sub(self.range.len());
        let own = self.back.get(..last).unwrap_or(&self.back);
        state.update(&concat_hashes(own.iter().map(|one| &one.hash)));
        state
    }

    /// A shared element as a segment; `at` counts from the first of them.
    fn shared_segment(&self, at: usize) -> Option<OutlineSegment> {
        let place = self.range.start.checked_add(at)?;
        let element = self.shared.get(place).filter(|_| at < self.range.len())?;
        Some(segment_of(self.elements_before + at, element))
    }

    fn can_carry(&self, at: usize, segment: &OutlineSegment) -> bool {
        segment.can_carry && !self.forbidden.contains(&at)
    }
}

impl SegmentList for SplitOutline<'_> {
    fn segment_count(&self) -> usize {
        self.outline.segments.len() + self.range.len() + self.back.len()
    }

    fn segment(&self, at: usize) -> Option<Cow<'_, OutlineSegment>> {
        let front = self.outline.segments.len();
        let segment = match at.checked_sub(front) {
            None => Cow::Borrowed(self.outline.segments.get(at)?),
            Some(behind) => match behind.checked_sub(self.range.len()) {
                None => Cow::Owned(self.shared_segment(behind)?),
                Some(last) => Cow::Borrowed(self.back.get(last)?),
            },
        };
        if self.can_carry(at, &segment) == segment.can_carry {
            return Some(segment);
        }
        Some(Cow::Owned(OutlineSegment {
            can_carry: false,
            ..segment.into_owned()
        }))
    }

    fn totals(&self, range: Range<usize>) -> SegmentTotals {
        let front = self.outline.segments.len();
        let end = front + self.range.len();
        let mut sum = self.outline.totals(range.start..range.end.min(front));
        let shared = range.start.max(front)..range.end.min(end);
        if shared.start < shared.end {
            let first = self.range.start;
            let own = first + shared.start - front..first + shared.end - front;
            let own = self.shared.totals(own);
            sum.tokens = sum.tokens.saturating_add(own.tokens);
            sum.blocks += own.blocks;
        }
        let (from, to) = (range.start.max(end) - end, range.end.max(end) - end);
        let back = self.back.get(from..to.min(self.back.len()));
        for segment in back.unwrap_or_default() {
            sum.tokens = sum.tokens.saturating_add(segment.tokens.midpoint());
            sum.blocks += segment.blocks;
        }
        sum
    }

    fn prefix_hashes(&self, segments: &[usize]) -> Vec<ContentHash> {
        let hash = |segment: &usize| self.prefix_hash(*segment);
        segments.iter().map(hash).collect()
    }

    fn marked_segments(&self) -> Vec<usize> {
        let front = self.outline.segments.len();
        let mut marked = self.outline.marked_segments();
        // Nearly no history has markers of its own.
        if self.shared.totals(self.range.clone()).marks > 0 {
            let shared = self.shared.iter_range(self.range.clone()).enumerate();
            let own = shared.filter(|(_, element)| !element.marks.is_empty());
            marked.extend(own.map(|(at, _)| front + at));
        }
        let back = self.back.iter().enumerate();
        let back = back.filter(|(_, segment)| !segment.markers.is_empty());
        marked.extend(back.map(|(at, _)| front + self.range.len() + at));
        marked
    }

    fn last_segment_where(
        &self,
        lasts: RangeInclusive<SegmentStability>,
        like: &dyn Fn(&OutlineSegment) -> bool,
    ) -> Option<usize> {
        let front = self.outline.segments.len();
        let shared = front..front + self.range.len();
        // Shared elements are history.
        let shared = match lasts.contains(&SegmentStability::Onwards) {
            true => shared,
            false => 0..0,
        };
        let back = front + self.range.len()..self.segment_count();
        let mut newest_first = back.rev().chain(shared.rev()).chain((0..front).rev());
        newest_first.find(|at| {
            let segment = self.segment(*at);
            segment.is_some_and(|one| lasts.contains(&one.stability) && like(&one))
        })
    }

    fn whole_marker(&self) -> Option<CacheTtl> {
        self.outline.whole_marker()
    }
}

/// The names of the system prompt where it does not stand among the messages.
pub(super) fn system_names(format: Format) -> &'static [&'static str] {
    let members = format.spec().members();
    members.map_or(&[], |members| members.instructions)
}

/// The JSON of a part before the history.
fn head_value<'a>(format: Format, fields: &Fields<'a>, part: HeadPart) -> Option<&'a str> {
    let value = match part {
        HeadPart::Tools => find_member(fields, format.spec().tool_paths()).map(|(_, tools)| tools),
        HeadPart::System => fields.get(system_names(format)),
    };
    value.map(|value| value.get())
}

/// The same, of the text that a request begins with.
fn head_text(format: Format, before: &str, part: HeadPart) -> Option<String> {
    // Closed to be an object; the array is empty in it.
    let text = format!("{before}]}}");
    let fields = Fields::parse(&text).ok()?;
    head_value(format, &fields, part).map(str::to_owned)
}

/// How many blocks an array has; a string is one.
fn block_count(json: &str) -> usize {
    let list: Option<Vec<&serde_json::value::RawValue>> = serde_json::from_str(json).ok();
    list.map_or(1, |list| list.len())
}

/// What an element is to a cache.
// All fields at once: setting them one by one costs a twentieth of a compile that changes nothing.
fn segment_of(index: usize, element: &Element) -> OutlineSegment {
    OutlineSegment {
        part: element.part,
        index,
        path: String::new(),
        hash: element.hash,
        bytes: element.json.len(),
        tokens: element.tokens,
        blocks: element.blocks,
        stability: element.lasts,
        can_carry: element.can_carry,
        markers: element.marks.clone(),
    }
}
