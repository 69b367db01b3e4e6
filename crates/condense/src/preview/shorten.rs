//! Shortens one text to a preview.

use std::fmt::Write as _;
use std::ops::Range;

use contexture_tokens::TokenCounter;
use serde::Serialize;

use crate::cut_points::{count_feeds, head_end, open_lines, tail_start};
use crate::link::Link;
use crate::preview::error_lines::{ErrorLine, ErrorLineScan, error_lines};
use crate::preview::policy::{PreviewPolicy, TextSize};

/// Maximum size of a preview's own words, in any unit: they are ASCII.
const OWN_WORDS: u64 = 400;

/// A text shortened to a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The text that is shown.
    pub text: String,
    /// Data about the original.
    pub facts: PreviewFacts,
}

/// Data about the text that a preview replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreviewFacts {
    /// Link to the whole text, if it is stored where it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Bytes of the whole text.
    pub bytes: u64,
    /// Characters of the whole text, as Unicode scalar values.
    pub characters: u64,
    /// Lines of the whole text.
    pub lines: u64,
    /// Ranges of the whole text that are shown, in bytes, in order, not overlapping.
    #[serde(rename = "shown")]
    pub shown_ranges: Vec<Range<usize>>,
    /// Bytes that are not shown.
    pub omitted_bytes: u64,
    /// Number of lines between head and tail that report errors. In a text with more than 100,000 candidate words, only
    /// those at the beginning and in the last 256 KiB are counted.
    pub error_lines: u64,
}

/// Shortens a text that is larger than the policy's threshold.
pub(crate) fn shorten_output(
    text: &str,
    policy: &PreviewPolicy,
    link: Option<Link>,
    counter: &dyn TokenCounter,
) -> Option<Preview> {
    let threshold = policy.threshold.at_least_smallest();
    if threshold.can_fit(text, counter) {
        return None;
    }
    let middle = omitted_range(text, policy, threshold, counter);
    let errors = error_lines(text, middle.clone(), policy.error_lines);
    let whole = ShortenedText {
        text,
        link,
        characters: text.chars().count() as u64,
        feeds: count_feeds(text),
        middle,
        errors: &errors,
    };
    let before = whole.head_with_notice();
    // As many error lines as fit, the first ones first.
    let (shown, lines) = (0..=errors.lines.len()).rev().find_map(|count| {
        let lines = errors.lines.get(..count).unwrap_or_default();
        let shown = whole.render(&before, lines);
        threshold.can_fit(&shown, counter).then_some((shown, lines))
    })?;
    // A threshold in tokens may be exceeded by a text that is short in bytes: then a preview would gain nothing.
    (shown.len() < text.len()).then(|| Preview {
        text: shown,
        facts: whole.preview_facts(lines),
    })
}

/// Returns the range to omit: head and tail are halved until they fit beside the preview's own words.
fn omitted_range(
    text: &str,
    policy: &PreviewPolicy,
    threshold: TextSize,
    counter: &dyn TokenCounter,
) -> Range<usize> {
    let room = threshold.saturating_sub(OWN_WORDS);
    let (mut head, mut tail) = (policy.head, policy.tail);
    loop {
        let (end, start) = (head_end(text, head), tail_start(text, tail));
        let ends = [text.get(..end), text.get(start..)].map(Option::unwrap_or_default);
        if end < start && room.can_fit(&ends.concat(), counter) || head + tail == 0 {
            return end..start;
        }
        // Halving ends after a few steps and preserves the ratio of head to tail.
        (head, tail) = (head / 2, tail / 2);
    }
}

/// A text and the range of it that is omitted.
struct ShortenedText<'a> {
    text: &'a str,
    link: Option<Link>,
    characters: u64,
    feeds: u64,
    middle: Range<usize>,
    errors: &'a ErrorLineScan,
}

impl ShortenedText<'_> {
    fn head(&self) -> &str {
        self.text.get(..self.middle.start).unwrap_or_default()
    }

    fn line_count(&self) -> u64 {
        self.feeds + open_lines(self.text)
    }

    fn tail(&self) -> &str {
        self.text.get(self.middle.end..).unwrap_or_default()
    }

    /// Returns the head, followed by a notice of what is omitted.
    fn head_with_notice(&self) -> String {
        let (head, tail) = (self.head(), self.tail());
        let omitted = self.text.get(self.middle.clone()).unwrap_or_default();
        // Counting the ends is cheaper than counting the middle, which may be long.
        let ends = head.chars().count() + tail.chars().count();
        let characters = self.characters.saturating_sub(ends as u64);
        let first = count_feeds(head) + 1;
        let feeds = self.feeds.saturating_sub(count_feeds(tail));
        let last = (feeds + open_lines(omitted)).max(first);
        let mut before = head.to_owned();
        if !head.is_empty() && !head.ends_with('\n') {
            before.push('\n');
        }
        let (all, lines) = (self.characters, self.line_count());
        let rest = match self.link {
            Some(link) => format!("whole text: {link}"),
            // A link that leads nowhere would send a model looking for it.
            None => "the rest is not available".to_owned(),
        };
        let _ = writeln!(
            before,
            "[shortened here: {characters} of {all} characters, lines {first}-{last} of {lines}; {rest}]",
        );
        before
    }

    fn render(&self, before: &str, errors: &[ErrorLine]) -> String {
        let mut out = before.to_owned();
        if !errors.is_empty() {
            let (shown, found) = (errors.len(), self.errors.found);
            let more = if self.errors.is_partial {
                " or more"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "[{shown} of {found}{more} lines in it that report errors:]"
            );
            for line in errors {
                let _ = writeln!(out, "{}: {}", line.number, line.shown_text(self.text));
            }
            if !self.tail().is_empty() {
                out.push_str("[the end:]\n");
            }
        }
        out.push_str(self.tail());
        out
    }

    fn preview_facts(&self, errors: &[ErrorLine]) -> PreviewFacts {
        let Range { start, end } = self.middle;
        let head = (start > 0).then_some(0..start);
        let tail = (end < self.text.len()).then_some(end..self.text.len());
        let errors = errors.iter().map(|line| line.shown_range(self.text));
        let shown: Vec<Range<usize>> = head.into_iter().chain(errors).chain(tail).collect();
        let bytes = self.text.len();
        let seen: usize = shown.iter().map(Range::len).sum();
        PreviewFacts {
            link: self.link,
            bytes: bytes as u64,
            characters: self.characters,
            lines: self.line_count(),
            omitted_bytes: bytes.saturating_sub(seen) as u64,
            shown_ranges: shown,
            error_lines: self.errors.found,
        }
    }
}
