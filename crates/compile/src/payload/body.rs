//! The finished request: a rope of pieces that are shared with the scratch and with other payloads.
//!
//! A payload is `before · elements joined by commas · after`. It is flattened only when it is sent.
//! Cache marks are set on the finished pieces, so that the pieces stay the same whatever is marked.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use contexture_ir::{ContentHash, Fields, finish_content_hash};
use contexture_prompt_cache::{
    MarkerPlan, MarkerReason, Outline, OutlineSegment, RequestPart, automatic_marker, setting_value,
};
use contexture_tokens::TokenBounds;
use contexture_wire::{
    CacheTtl, Format, HeadPart, disable_automatic_markers, find_member, head_markers, lift,
    remove_head_markers, remove_markers, set_head_marker, set_marker,
};

use crate::blocks::{Element, NO_ELEMENTS, Rope};
use crate::error::Refusal;
use crate::input::SharedAdapter;

/// How many bytes are gathered for the hasher.
const HASHED_AT_ONCE: usize = 64 << 10;

/// A provider's JSON request.
#[derive(Clone, Debug)]
pub struct Payload {
    pub(super) head: Arc<PayloadHead>,
    pub(super) before: Arc<str>,
    pub(super) elements: Rope,
    pub(super) after: Arc<str>,
    pub(super) len: usize,
    /// With what a cache object holds that this one leaves out, if it names one.
    pub(super) full: Option<Arc<Self>>,
    /// The request that a target adapter made of it.
    pub(super) adapted: Option<Arc<str>>,
}

/// What stands around the elements, as far as its bytes do not tell.
#[derive(Clone, Debug)]
pub(crate) struct PayloadHead {
    pub(crate) format: Format,
    pub(crate) model: String,
    pub(crate) tools: TokenBounds,
    pub(crate) system: TokenBounds,
    /// What the format adds to a request.
    pub(crate) framing: TokenBounds,
}

/// What one segment of the outline is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentPosition {
    Head(HeadPart),
    Settings(RequestPart),
    Element(usize),
}

impl Payload {
    pub(crate) fn new(
        head: PayloadHead,
        before: Arc<str>,
        elements: Rope,
        after: Arc<str>,
    ) -> Self {
        let mut payload = Self {
            head: Arc::new(head),
            len: 0,
            before,
            elements,
            after,
            full: None,
            adapted: None,
        };
        payload.update_len();
        payload
    }

    /// Replaces the JSON by what a target adapter makes of the document of items that it is.
    ///
    /// # Errors
    /// [`Refusal::Adapter`].
    pub(crate) fn rewrite_with(&mut self, adapter: &SharedAdapter) -> Result<(), Refusal> {
        let refusal = |reason: String| Refusal::Adapter {
            adapter: adapter.name().to_owned(),
            reason,
        };
        let lifted =
            lift(Format::Items, &self.to_json()).map_err(|error| refusal(error.to_string()))?;
        let written = adapter.encode_request(&lifted.transcript);
        let written = written.map_err(|error| refusal(error.reason))?;
        self.adapted = Some(written.get().into());
        self.update_len();
        Ok(())
    }

    pub(super) fn update_len(&mut self) {
        self.len = self.json_chunks().map(str::len).sum();
    }

    /// The payload with what a cache object holds of it; itself if it names none.
    pub(crate) fn full_payload(&self) -> &Self {
        self.full.as_deref().unwrap_or(self)
    }

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
        let head = &*self.head;
        // The envelope without its array is a small object: parsing it does not touch the messages.
        let around = format!("{}{}", self.before, self.after);
        let fields = Fields::parse(&around).unwrap_or_default();
        let mut scope = head.model.clone();
        for (name, _) in head.format.spec().cache_key().scopes {
            scope.push('\n');
            scope.push_str(setting_value(&fields, &[name]));
        }
        let automatic = automatic_marker(head.format, &fields);
        let mut outline = Outline::new(head.format, scope, automatic);
        let places = self.segment_positions(&fields);
        // The elements are asked for in their order: finding each by its number would cost a search.
        let mut elements = self.elements.iter().enumerate();
        outline.segments.reserve(places.len());
        for place in places {
            outline.segments.extend(match place {
                SegmentPosition::Head(part) => Some(self.head_segment(part, &fields)),
                SegmentPosition::Settings(part) => Some(self.settings_segment(part, &fields)),
                SegmentPosition::Element(_) => {
                    elements.next().map(|(at, element)| segment_of(at, element))
                }
            });
        }
        let mut add = |part: Option<RequestPart>, tokens: TokenBounds| {
            let of = |one: &&mut OutlineSegment| part.is_none_or(|part| one.part == part);
            if let Some(first) = outline.segments.iter_mut().find(of) {
                first.tokens += tokens;
            }
        };
        add(Some(RequestPart::Tools), head.tools);
        add(Some(RequestPart::System), head.system);
        add(None, head.framing);
        outline
    }

    /// The segments of the outline in their order.
    pub(super) fn segment_positions(&self, fields: &Fields<'_>) -> Vec<SegmentPosition> {
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
        let lead = lead.count();
        let tools = head(HeadPart::Tools);
        let form = group(RequestPart::Form);
        [tools, form, head(HeadPart::System)]
            .into_iter()
            .flatten()
            .chain((0..lead).map(SegmentPosition::Element))
            .chain(group(RequestPart::Settings))
            .chain((lead..self.elements.len()).map(SegmentPosition::Element))
            .collect()
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

    /// Sets marks, and removes those of the items that have to go. A mark that its segment turns out
    /// not to be able to carry is taken out of `marking`, and so is what it would have kept; gives those segments.
    pub fn set_markers(&mut self, marking: &mut MarkerPlan) -> Vec<usize> {
        let around = format!("{}{}", self.before, self.after);
        let places = self.segment_positions(&Fields::parse(&around).unwrap_or_default());
        let strip = marking
            .strip
            .iter()
            .filter_map(|segment| places.get(*segment));
        // Removed before new ones are set: providers count all markers of a request.
        self.unmark_segments(strip.copied());
        let mut failed = Vec::new();
        for mark in &marking.markers {
            // Markers that came with the items stand in their JSON already, and those of the provider
            // are not written at all.
            let ours = !matches!(mark.reason, MarkerReason::Given | MarkerReason::Provider);
            let place = places.get(mark.segment).copied();
            if ours && !place.is_some_and(|place| self.mark_segment(place, mark.ttl)) {
                failed.push(mark.segment);
            }
        }
        marking
            .markers
            .retain(|mark| !failed.contains(&mark.segment));
        marking
            .cached_prefixes
            .retain(|kept| !failed.contains(&kept.segment));
        if marking.only_ours
            && let Some(after) = disable_automatic_markers(self.head.format, &self.after)
        {
            self.after = after.into();
        }
        self.update_len();
        failed
    }

    fn mark_segment(&mut self, place: SegmentPosition, ttl: CacheTtl) -> bool {
        let format = self.head.format;
        match place {
            SegmentPosition::Settings(_) => false,
            SegmentPosition::Head(part) => {
                let marked = set_head_marker(format, &self.before, part, ttl);
                marked.map(|text| self.before = text.into()).is_some()
            }
            SegmentPosition::Element(at) => {
                let Some(element) = self.elements.get(at) else {
                    return false;
                };
                // The format may refuse, for example on a message without a block that takes markers.
                let Some(text) = set_marker(format, &element.json, ttl) else {
                    return false;
                };
                let text: Arc<str> = text.into();
                self.elements
                    .change_elements(&BTreeSet::from([at]), |element| {
                        element.json = Arc::clone(&text);
                        element.marked = Some(ttl);
                    });
                true
            }
        }
    }

    fn unmark_segments(&mut self, places: impl Iterator<Item = SegmentPosition>) {
        let format = self.head.format;
        let mut elements = BTreeSet::new();
        for place in places {
            match place {
                SegmentPosition::Settings(_) => {}
                SegmentPosition::Head(part) => {
                    if let Some(text) = remove_head_markers(format, &self.before, part) {
                        self.before = text.into();
                    }
                }
                SegmentPosition::Element(at) => {
                    elements.insert(at);
                }
            }
        }
        self.elements.change_elements(&elements, |element| {
            if let Some(text) = remove_markers(format, &element.json) {
                element.json = text.into();
            }
            element.marks.clear();
        });
    }

    /// The JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.len);
        self.json_chunks().for_each(|piece| out.push_str(piece));
        out
    }

    /// The JSON text in pieces, in order, without copying.
    pub fn json_chunks(&self) -> impl Iterator<Item = &str> {
        // An adapter's text replaces the whole payload. Checked once: a check for each of thousands of pieces shows.
        let (before, elements, after) = match self.adapted.as_deref() {
            Some(text) => (text, &NO_ELEMENTS, ""),
            None => (&*self.before, &self.elements, &*self.after),
        };
        std::iter::once(before)
            .chain(elements.json_chunks())
            .chain(std::iter::once(after))
            .filter(|piece| !piece.is_empty())
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes; a compiled payload always has some.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many messages of the conversation it has; those of the system prompt do not count.
    #[must_use]
    pub(crate) fn message_count(&self) -> usize {
        let begun = |element: &Element| {
            let continued = usize::from(element.continues.is_some());
            element.messages.saturating_sub(continued)
        };
        self.elements.iter().map(begun).sum()
    }

    /// The first 16 bytes of BLAKE3 over the JSON text. Costs a pass over all bytes.
    #[must_use]
    pub fn content_hash(&self) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        // Gathered first: many small updates of a hasher cost more than the hashing.
        let mut bytes = Vec::with_capacity(HASHED_AT_ONCE.min(self.len));
        for piece in self.json_chunks() {
            bytes.extend_from_slice(piece.as_bytes());
            if bytes.len() >= HASHED_AT_ONCE {
                hasher.update(&bytes);
                bytes.clear();
            }
        }
        hasher.update(&bytes);
        finish_content_hash(&hasher)
    }

    /// A hash over the hashes of the pieces: equal for payloads that were compiled equally, and cheap.
    /// [`Payload::content_hash`] is the hash of the bytes.
    #[must_use]
    pub fn fingerprint(&self) -> ContentHash {
        // Gathered first, as for the hash of the bytes.
        let mut bytes = Vec::with_capacity((self.elements.len() + 2) * 16);
        for edge in [&self.before, &self.after] {
            bytes.extend_from_slice(ContentHash::of(edge.as_bytes()).as_bytes());
        }
        for element in self.elements.iter() {
            bytes.extend_from_slice(element.hash.as_bytes());
            // Markers are not part of the hash of an element, yet they change the bytes.
            bytes.extend(element.marked.map(|ttl| ttl as u8));
        }
        if let Some(adapted) = &self.adapted {
            bytes.extend_from_slice(ContentHash::of(adapted.as_bytes()).as_bytes());
        }
        ContentHash::of(&bytes)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json_chunks().try_for_each(|piece| f.write_str(piece))
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
