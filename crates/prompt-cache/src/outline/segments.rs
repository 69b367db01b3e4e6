//! What of a payload matters to a provider's cache: its segments in the cache's order.
//!
//! A segment is a stretch that is the same or another, never half the same: the tools, what of the
//! settings is part of the prefix, the system prompt, each piece of the messages. Its hash does not
//! depend on the markers in it. Outlines of one conversation are compared with each other only if they
//! were made in the same way: both from payloads, or both from JSON.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use contexture_ir::{ContentHash, concat_hashes, finish_content_hash};
use contexture_tokens::TokenBounds;
use contexture_wire::{CacheTtl, Format, RequestPart};

/// A payload as its provider's cache sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// The payload's format.
    pub format: Format,
    /// What a cache is never shared across: the model's name, and what the host adds.
    pub scope: String,
    /// What it is made of, in the cache's order.
    pub segments: Vec<OutlineSegment>,
    /// The marker that stands for the whole request, where the provider moves it by itself.
    pub whole: Option<CacheTtl>,
}

/// A stretch of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineSegment {
    /// Of which part of the request.
    pub part: RequestPart,
    /// Its index: of a payload's pieces, or of the array in its JSON.
    pub index: usize,
    /// Where it stands in JSON, where it is of JSON: `messages[12].content[0]`.
    pub path: String,
    /// The hash of its content, markers apart.
    pub hash: ContentHash,
    /// Its length in the payload.
    pub bytes: usize,
    /// What it weighs: from at least to at most.
    pub tokens: TokenBounds,
    /// How many content blocks it has, by which look-back is counted.
    pub blocks: usize,
    /// How long it stays.
    pub stability: SegmentStability,
    /// Whether the format lets it carry a marker.
    pub can_carry: bool,
    /// The markers in it that were there before any of ours.
    pub markers: Vec<CacheTtl>,
}

/// How long a segment stays as and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentStability {
    /// As long as the epoch: tools, system prompt, anchors.
    Epoch,
    /// From now on: history.
    Onwards,
    /// For this call: what stands behind the history.
    Call,
}

/// Sums over segments of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentTotals {
    /// Tokens at their best guess.
    pub tokens: u64,
    /// Content blocks, by which look-back is counted.
    pub blocks: usize,
}

/// The segments of a request, as far as markers and predictions ask for them.
///
/// [`Outline`] holds them all. A program that extends a long request by a little can answer without making one: an
/// implementation gives what the outline of the same request would.
pub trait SegmentList {
    /// How many there are.
    fn segment_count(&self) -> usize;

    /// One of them.
    fn segment(&self, at: usize) -> Option<Cow<'_, OutlineSegment>>;

    /// The totals of some segments; what is behind the last adds nothing.
    fn totals(&self, range: Range<usize>) -> SegmentTotals;

    /// For each of some segments, ascending, the hash over everything up to and including it.
    fn prefix_hashes(&self, segments: &[usize]) -> Vec<ContentHash>;

    /// The segments that have markers of their own, ascending.
    fn marked_segments(&self) -> Vec<usize>;

    /// The last segment that lasts so long and satisfies a condition.
    fn last_segment_where(
        &self,
        lasts: RangeInclusive<SegmentStability>,
        like: &dyn Fn(&OutlineSegment) -> bool,
    ) -> Option<usize>;

    /// The marker that stands for the whole request, where the provider moves it by itself.
    fn whole_marker(&self) -> Option<CacheTtl>;
}

impl SegmentList for Outline {
    fn segment_count(&self) -> usize {
        self.segments.len()
    }

    fn segment(&self, at: usize) -> Option<Cow<'_, OutlineSegment>> {
        self.segments.get(at).map(Cow::Borrowed)
    }

    fn totals(&self, range: Range<usize>) -> SegmentTotals {
        let mut sum = SegmentTotals::default();
        let own = range.start..range.end.min(self.segments.len());
        for segment in self.segments.get(own).unwrap_or_default() {
            sum.tokens = sum.tokens.saturating_add(segment.tokens.midpoint());
            sum.blocks += segment.blocks;
        }
        sum
    }

    fn prefix_hashes(&self, segments: &[usize]) -> Vec<ContentHash> {
        let mut hasher = blake3::Hasher::new();
        // The scope first: equal contents for two models are two prefixes.
        hasher.update(ContentHash::of(self.scope.as_bytes()).as_bytes());
        let mut done = 0;
        let hash = |segment: &usize| {
            let end = segment.saturating_add(1).min(self.segments.len());
            // Each segment is hashed once, however many prefixes are asked for.
            let new = self.segments.get(done..end).unwrap_or_default();
            hasher.update(&concat_hashes(new.iter().map(|one| &one.hash)));
            done = done.max(end);
            finish_content_hash(&hasher)
        };
        segments.iter().map(hash).collect()
    }

    fn marked_segments(&self) -> Vec<usize> {
        let all = self.segments.iter().enumerate();
        let marked = all.filter(|(_, segment)| !segment.markers.is_empty());
        marked.map(|(at, _)| at).collect()
    }

    fn last_segment_where(
        &self,
        lasts: RangeInclusive<SegmentStability>,
        like: &dyn Fn(&OutlineSegment) -> bool,
    ) -> Option<usize> {
        self.segments
            .iter()
            .rposition(|segment| lasts.contains(&segment.stability) && like(segment))
    }

    fn whole_marker(&self) -> Option<CacheTtl> {
        self.whole
    }
}

impl OutlineSegment {
    /// A segment of nothing.
    #[must_use]
    pub fn new(part: RequestPart, index: usize, hash: ContentHash) -> Self {
        Self {
            part,
            index,
            path: String::new(),
            hash,
            bytes: 0,
            tokens: TokenBounds::ZERO,
            blocks: 0,
            stability: SegmentStability::Epoch,
            can_carry: false,
            markers: Vec::new(),
        }
    }
}

impl Outline {
    /// An outline without segments yet; `whole` is the marker that the provider moves by itself.
    #[must_use]
    pub fn new(format: Format, scope: String, whole: Option<CacheTtl>) -> Self {
        Self {
            format,
            scope,
            segments: Vec::new(),
            whole,
        }
    }

    /// The hash over everything up to and including a segment; that of the scope if there is no such
    /// segment.
    #[must_use]
    pub fn prefix_hash(&self, segment: usize) -> ContentHash {
        let first = self.prefix_hashes(&[segment]).into_iter().next();
        first.unwrap_or_else(|| ContentHash::of(b""))
    }

    /// The tokens up to and including each segment, at their best guess.
    #[must_use]
    pub fn cumulative_tokens(&self) -> Vec<u64> {
        let mut sum = 0_u64;
        let add = |segment: &OutlineSegment| {
            sum = sum.saturating_add(segment.tokens.midpoint());
            sum
        };
        self.segments.iter().map(add).collect()
    }

    /// All tokens at their best guess.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let guesses = self
            .segments
            .iter()
            .map(|segment| segment.tokens.midpoint());
        guesses.fold(0, u64::saturating_add)
    }

    /// All tokens, from at least to at most.
    #[must_use]
    pub fn token_bounds(&self) -> TokenBounds {
        self.segments.iter().map(|segment| segment.tokens).sum()
    }

    /// How many segments both begin with; 0 across scopes and formats.
    #[must_use]
    pub(crate) fn common_prefix(&self, other: &Self) -> usize {
        if (self.format, &self.scope) != (other.format, &other.scope) {
            return 0;
        }
        let pairs = self.segments.iter().zip(&other.segments);
        pairs.take_while(|(a, b)| a.hash == b.hash).count()
    }

    /// Some segments turned out not to be able to carry a marker.
    pub fn forbid_markers(&mut self, segments: &[usize]) {
        for at in segments {
            if let Some(segment) = self.segments.get_mut(*at) {
                segment.can_carry = false;
            }
        }
    }

    /// The same without the oldest messages, so that at most `limit` tokens are left: what a host does
    /// that only slides a window. Structure is not its concern, so calls may lose their outputs.
    #[must_use]
    pub(crate) fn without_oldest_messages(&self, limit: u64) -> Self {
        let mut left = self.tokens();
        let fits = |segment: &&OutlineSegment| {
            let old = segment.part == RequestPart::Messages
                && segment.stability == SegmentStability::Onwards;
            // Oldest first until the rest fits; tools and system prompt always stay.
            let drop = old && left > limit;
            if drop {
                left = left.saturating_sub(segment.tokens.midpoint());
            }
            !drop
        };
        Self {
            segments: self.segments.iter().filter(fits).cloned().collect(),
            ..self.clone()
        }
    }
}
