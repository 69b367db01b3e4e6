//! The finished request: a rope of pieces that are shared with the scratch and with other payloads.
//!
//! A payload is `before · elements joined by commas · after`. It is flattened only when it is sent.
//! Cache marks are set on the finished pieces, so that the pieces stay the same whatever is marked.
//!
//! Not here: what a provider's cache sees of it (`outline`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use contexture_ir::{ContentHash, Fields, finish_content_hash};
use contexture_prompt_cache::{MarkerPlan, MarkerReason};
use contexture_tokens::TokenBounds;
use contexture_wire::{
    CacheTtl, Format, disable_automatic_markers, lift, remove_head_markers, remove_markers,
    set_head_marker, set_marker,
};

use crate::blocks::{ElementTotals, NO_ELEMENTS, Rope};
use crate::error::Refusal;
use crate::input::SharedAdapter;
use crate::payload::outline::SegmentPosition;

/// How many bytes are gathered for the hasher.
const HASHED_AT_ONCE: usize = 64 << 10;

/// A provider's JSON request.
#[derive(Clone, Debug)]
pub struct Payload {
    pub(super) head: Arc<PayloadHead>,
    pub(super) before: Arc<str>,
    pub(super) elements: Rope,
    pub(super) after: Arc<str>,
    /// The bytes of the elements, with commas.
    pub(super) elements_len: usize,
    pub(super) len: usize,
    messages: usize,
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

impl Payload {
    /// A payload of elements with these totals.
    pub(crate) fn new(
        head: Arc<PayloadHead>,
        (before, after): (Arc<str>, Arc<str>),
        (elements, totals): (Rope, ElementTotals),
    ) -> Self {
        let commas = elements.len().saturating_sub(1);
        let mut payload = Self {
            head,
            len: 0,
            elements_len: totals.written + commas,
            messages: totals.messages,
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
        let around = self.before.len() + self.after.len();
        self.len = match &self.adapted {
            Some(adapted) => adapted.len(),
            None => around + self.elements_len,
        };
    }

    /// The payload with what a cache object holds of it; itself if it names none.
    pub(crate) fn full_payload(&self) -> &Self {
        self.full.as_deref().unwrap_or(self)
    }

    /// Sets marks, and removes those of the items that have to go. A mark that its segment turns out
    /// not to be able to carry is taken out of `marking`, and so is what it would have kept; gives those segments.
    pub fn set_markers(&mut self, marking: &mut MarkerPlan) -> Vec<usize> {
        let around = format!("{}{}", self.before, self.after);
        let places = self.segment_layout(&Fields::parse(&around).unwrap_or_default());
        let strip = marking.strip.iter();
        let strip = strip.filter_map(|segment| places.position(*segment));
        // Removed before new ones are set: providers count all markers of a request.
        self.unmark_segments(strip);
        let mut failed = Vec::new();
        for mark in &marking.markers {
            // Markers that came with the items stand in their JSON already, and those of the provider
            // are not written at all.
            let ours = !matches!(mark.reason, MarkerReason::Given | MarkerReason::Provider);
            let place = places.position(mark.segment);
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
                let longer = self
                    .elements
                    .change_elements(&BTreeSet::from([at]), |element| {
                        element.json = Arc::clone(&text);
                        element.marked = Some(ttl);
                    });
                self.elements_len = self.elements_len.saturating_add_signed(longer);
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
        let longer = self.elements.change_elements(&elements, |element| {
            if let Some(text) = remove_markers(format, &element.json) {
                element.json = text.into();
            }
            element.marks.clear();
        });
        self.elements_len = self.elements_len.saturating_add_signed(longer);
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
    pub(crate) const fn message_count(&self) -> usize {
        self.messages
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

    /// A hash over the hashes of the pieces: equal for payloads that were compiled equally, and cheaper than
    /// [`Payload::content_hash`], which is the hash of the bytes.
    #[must_use]
    pub fn fingerprint(&self) -> ContentHash {
        self.fingerprint_of(self.outline().prefix_hash(usize::MAX))
    }

    /// The fingerprint of a payload whose outline has this hash over all segments.
    pub(crate) fn fingerprint_of(&self, segments: ContentHash) -> ContentHash {
        let mut bytes = segments.as_bytes().to_vec();
        for edge in [&self.before, &self.after] {
            bytes.extend_from_slice(ContentHash::of(edge.as_bytes()).as_bytes());
        }
        // Markers are not part of the hash of a segment, yet they change the bytes. What is marked is never shared.
        for (at, element) in self.elements.own_elements() {
            if let Some(ttl) = element.marked {
                bytes.extend_from_slice(&(at as u64).to_le_bytes());
                bytes.push(ttl as u8);
            }
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
