//! The band of a call: what its request was made of, small enough to be stored with the call.
//!
//! A report says everything of one compile and takes many kilobytes. The band keeps what is shown of a past call: for each part of
//! the payload its kind, items, tokens, verdict and rule, where the provider's cache ended, and why a prefix broke and what
//! that cost. It holds no texts and no names that people chose, and it is read as it was written, whatever a later compiler
//! would decide.
//!
//! Stored, it takes at most [`MAX_BAND_BYTES`]: neighbouring parts are joined until it fits, and [`CallBand::is_joined`] says so.
//! Joining keeps the sums of items and tokens.

mod codec;

pub use codec::{BandError, MAX_BAND_BYTES};

use contexture_prompt_cache::CacheUsage;

use crate::document::{EpochReason, Report, Segment, SegmentRule, SegmentVerdict};

/// The words of a part's band, in the order of their codes: words are added at the end.
const BANDS: [&str; 7] = [
    "tools", "system", "anchor", "history", "live", "tail", "framing",
];

/// The words of a part's source, in the order of their codes: words are added at the end. All other sources have names of
/// their own, which are stored nowhere.
const SOURCES: [&str; 22] = [
    CONTRIBUTION,
    "tools",
    "framing",
    "rounds",
    "thinking",
    "task",
    "opening",
    "pinned",
    "question",
    "compaction",
    "instructions",
    "fragments",
    "memory",
    "skills",
    "state",
    "scratchpad",
    "reminders",
    "plan",
    "retrieval",
    "observations",
    "guardrails",
    "context_budget",
];

/// The word for a source with a name of its own.
const CONTRIBUTION: &str = "contribution";

/// What the request of a call was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallBand {
    /// Tokens that the request might have: window minus reserve.
    pub limit: u64,
    /// Items on the path that it was made of.
    pub path_items: u64,
    /// Its parts in the order of the payload, with those that were left out.
    pub parts: Vec<BandPart>,
    /// Whether neighbouring parts are told as one, because all of them would have taken too much room.
    pub is_joined: bool,
    /// Tokens that were expected to be read from the provider's cache, from the front: where the cached prefix ends.
    pub cache_read: u64,
    /// Tokens behind them that were expected to be written to the cache.
    pub cache_written: u64,
    /// Why the prefix of the call before did not hold; `None` if it did, or there was no call before.
    pub prefix_break: Option<PrefixBreak>,
}

/// A part of a request. What several joined parts do not have in common is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandPart {
    /// Where it stands: `tools`, `system`, `anchor`, `history`, `live`, `tail` or `framing`.
    pub band: Option<&'static str>,
    /// What it is: `rounds`, `task`, `compaction`, `memory`, …; `contribution` for what a program named itself.
    pub source: Option<&'static str>,
    /// What became of it.
    pub verdict: Option<SegmentVerdict>,
    /// The rule that decided.
    pub rule: Option<SegmentRule>,
    /// Items of the path that it holds.
    pub items: u64,
    /// Indexes on the path of the first and the last item that it is about; `None` for what is not of the path.
    pub span: Option<(u64, u64)>,
    /// Tokens in the payload, as budgeted.
    pub tokens: u64,
    /// Tokens that it would have taken beside those.
    pub omitted_tokens: u64,
}

/// A prefix that the provider's cache held and that the request did not begin with any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixBreak {
    /// Why it did not hold.
    pub reason: EpochReason,
    /// Tokens that were cached and had to be read again; 0 if the cache had expired, or it is not known.
    pub lost_tokens: u64,
    /// What these cost more than from the cache, in 10⁻¹² dollars; `None` without prices.
    pub pico_dollars: Option<u64>,
}

impl CallBand {
    /// Returns the band of a compiled request. What its report cannot know is empty: the tokens and the price of a break.
    #[must_use]
    pub fn from_report(report: &Report) -> Self {
        let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
        let epoch = &report.epoch;
        let is_broken = epoch.opened && epoch.reason != EpochReason::First;
        let band = Self {
            limit: report.target.limit,
            path_items: count(report.totals.items),
            parts: report.segments.iter().map(BandPart::from_segment).collect(),
            is_joined: false,
            prefix_break: is_broken.then_some(PrefixBreak {
                reason: epoch.reason,
                lost_tokens: 0,
                pico_dollars: None,
            }),
            ..Self::default()
        };
        band.with_cache_usage(&report.cache.predicted)
    }

    /// Replaces what was expected of the provider's cache.
    #[must_use]
    pub fn with_cache_usage(self, used: &CacheUsage) -> Self {
        Self {
            cache_read: used.read,
            cache_written: used.write.saturating_add(used.write_long),
            ..self
        }
    }

    /// Notes what the break of the prefix cost; without a break nothing.
    #[must_use]
    pub fn with_break_cost(mut self, lost_tokens: u64, pico_dollars: Option<u64>) -> Self {
        if let Some(broken) = &mut self.prefix_break {
            (broken.lost_tokens, broken.pico_dollars) = (lost_tokens, pico_dollars);
        }
        self
    }

    /// Returns the tokens of all parts in the payload.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let parts = self.parts.iter();
        parts.fold(0, |sum, part| sum.saturating_add(part.tokens))
    }

    /// Returns the tokens that all parts would have taken beside those.
    #[must_use]
    pub fn omitted_tokens(&self) -> u64 {
        let parts = self.parts.iter();
        parts.fold(0, |sum, part| sum.saturating_add(part.omitted_tokens))
    }

    /// Joins all neighbours for which `is_alike` holds.
    fn join_parts(&mut self, is_alike: impl Fn(&BandPart, &BandPart) -> bool) {
        let mut joined: Vec<BandPart> = Vec::new();
        for part in &self.parts {
            match joined.last_mut() {
                Some(last) if is_alike(last, part) => *last = last.joined_with(part),
                _ => joined.push(*part),
            }
        }
        self.is_joined |= joined.len() < self.parts.len();
        self.parts = joined;
    }

    /// Joins parts by the first of these rules that is enough: of one kind and verdict, of one band and verdict, of one band, all.
    fn join_until(&mut self, fits: impl Fn(&Self) -> bool) {
        let rules: [fn(&BandPart, &BandPart) -> bool; 4] = [
            |one, other| one.kind() == other.kind(),
            |one, other| (one.band, one.verdict) == (other.band, other.verdict),
            |one, other| one.band == other.band,
            |_, _| true,
        ];
        // Each rule is one pass over the parts, so even a request of thousands of parts is cheap to store; the last one always
        // fits.
        for is_alike in rules {
            if fits(self) {
                return;
            }
            self.join_parts(is_alike);
        }
    }
}

impl BandPart {
    /// Creates an empty part of the words that documents have for its band and its source. Words of another version count as
    /// none.
    ///
    /// ```
    /// use contexture_report::{BandPart, part_kind};
    ///
    /// let part = BandPart { tokens: 120, ..BandPart::from_words(Some("history"), Some("compaction")) };
    /// assert_eq!(part_kind(&part), "compaction");
    /// ```
    #[must_use]
    pub fn from_words(band: Option<&str>, source: Option<&str>) -> Self {
        Self {
            band: band.and_then(|word| known_word(&BANDS, word)),
            source: source.and_then(|word| known_word(&SOURCES, word)),
            ..Self::default()
        }
    }

    fn from_segment(segment: &Segment) -> Self {
        let index = |at: usize| u64::try_from(at).unwrap_or(u64::MAX);
        Self {
            band: known_word(&BANDS, segment.band),
            // A name that a program chose may say something of its users, and rows of calls have no texts.
            source: known_word(&SOURCES, &segment.source).or(Some(CONTRIBUTION)),
            verdict: Some(segment.verdict),
            rule: Some(segment.rule_kind),
            items: index(segment.items),
            span: segment
                .span
                .map(|(first, last)| (index(first), index(last))),
            tokens: segment.tokens,
            omitted_tokens: segment.omitted_tokens,
        }
    }

    fn kind(
        &self,
    ) -> (
        Option<&'static str>,
        Option<&'static str>,
        Option<SegmentVerdict>,
        Option<SegmentRule>,
    ) {
        (self.band, self.source, self.verdict, self.rule)
    }

    /// One part that stands for both.
    fn joined_with(&self, other: &Self) -> Self {
        let span = match (self.span, other.span) {
            (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
            (one, two) => one.or(two),
        };
        Self {
            band: self.band.filter(|band| other.band == Some(band)),
            source: self.source.filter(|source| other.source == Some(source)),
            verdict: self
                .verdict
                .filter(|verdict| other.verdict == Some(*verdict)),
            rule: self.rule.filter(|rule| other.rule == Some(*rule)),
            items: self.items.saturating_add(other.items),
            span,
            tokens: self.tokens.saturating_add(other.tokens),
            omitted_tokens: self.omitted_tokens.saturating_add(other.omitted_tokens),
        }
    }
}

/// Returns the word of a table that is equal to this one.
fn known_word(words: &[&'static str], word: &str) -> Option<&'static str> {
    words.iter().find(|known| **known == word).copied()
}
