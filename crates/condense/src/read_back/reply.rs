//! Replies of the built-in tool, as text for a model.
//!
//! Lines in square brackets before and after the text form the frame. Nothing parses them.

use std::fmt::{self, Write as _};
use std::ops::Range;

use crate::cut_points::{clip_line, clip_range};
use crate::link::Link;
use crate::read_back::excerpt::Excerpt;
use crate::read_back::find::FoundLines;

/// Characters shown of all results of a search together.
const RESULTS: usize = 4_000;

/// Reply of the built-in tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReply {
    /// What the model reads.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ReadReply {
    /// Creates the reply to a call that cannot be answered, with the reason.
    #[must_use]
    pub fn from_error(why: impl fmt::Display) -> Self {
        Self {
            text: why.to_string(),
            is_error: true,
        }
    }
}

/// A text that matches a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// Link to the item.
    pub link: Link,
    /// Description for people and models, such as `output of grep`.
    pub what: String,
    /// Number of the matching line; the first is 1.
    pub line: u64,
    /// The line, shortened.
    pub text: String,
    /// Link to a newer statement about the same thing, if there is one: what the line says was so until then.
    pub replaced_by: Option<Link>,
}

impl SearchHit {
    /// Creates a hit from a text and the range of its match in bytes, one of at most `of` results.
    #[must_use]
    pub fn new(link: Link, what: &str, text: &str, at: &Range<usize>, of: usize) -> Self {
        let before = text.get(..at.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |feed| feed + 1);
        let rest = text.get(start..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let shown = (RESULTS / of.max(1)).saturating_sub(140).clamp(60, 400);
        let what = what.chars().filter(|c| !c.is_control());
        Self {
            link,
            what: what.take(60).collect(),
            line: 1 + before.matches('\n').count() as u64,
            text: clip_line(line, &clip_range(line, at.start - start, shown)),
            replaced_by: None,
        }
    }
}

/// Result of a search in one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMatches {
    /// The best, best first; among equals the newest first.
    pub hits: Vec<SearchHit>,
    /// Whether other items match, too, or may.
    pub more: bool,
}

/// Formats an excerpt of the item that a link refers to.
#[must_use]
pub fn excerpt_reply(link: Link, excerpt: &Excerpt<'_>) -> ReadReply {
    let mut text = match excerpt.text {
        "" => format!("[{link} has {} lines: nothing there]", excerpt.lines),
        part => format!(
            "[{link}: lines {}-{} of {}, {} characters in all]\n{part}",
            excerpt.from.line, excerpt.last, excerpt.lines, excerpt.characters
        ),
    };
    if let Some(next) = excerpt.next {
        ensure_trailing_newline(&mut text);
        let _ = match next.column {
            0 => write!(text, "[more: offset {}]", next.line),
            column => write!(text, "[more: offset {}, column {column}]", next.line),
        };
    }
    text_reply(text)
}

/// Formats the matching lines of the item that a link refers to.
#[must_use]
pub fn matches_reply(link: Link, found: &FoundLines) -> ReadReply {
    let mut text = format!(
        "[{link}: {} of {} matching lines]",
        found.shown, found.matches
    );
    let mut before = None;
    for line in &found.lines {
        let gap = before.is_some_and(|before| before + 1 < line.number);
        text.push_str(if gap { "\n--\n" } else { "\n" });
        let mark = if line.matches { ':' } else { '-' };
        let _ = write!(text, "{}{mark}{}", line.number, line.text);
        before = Some(line.number);
    }
    if let Some(next) = found.next {
        let _ = write!(text, "\n[more: offset {next}]");
    }
    text_reply(text)
}

/// Formats the hits of a search.
#[must_use]
pub fn search_reply(found: &PathMatches) -> ReadReply {
    let mut text = match (found.hits.len(), found.more) {
        (0, _) => "[nothing found: other words may find it]".to_owned(),
        (count, false) => format!("[{count} found, best first]"),
        (count, true) => {
            format!("[{count} found, best first, and there are more: give more words or a `limit`]")
        }
    };
    for hit in &found.hits {
        let _ = write!(text, "\n{} {}, line {}", hit.link, hit.what, hit.line);
        if let Some(newer) = hit.replaced_by {
            let _ = write!(text, ", no longer so: see {newer}");
        }
        let _ = write!(text, ":\n{}", hit.text);
    }
    text_reply(text)
}

const fn text_reply(text: String) -> ReadReply {
    ReadReply {
        text,
        is_error: false,
    }
}

fn ensure_trailing_newline(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}
