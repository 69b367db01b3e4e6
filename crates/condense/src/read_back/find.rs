//! Finds the lines of a text that match a pattern.
//!
//! Patterns come from models: the cost of compiling them is bounded, and each line is searched on its own, so the whole
//! takes time linear in the text.

use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};

use crate::cut_points::{clip_line, clip_range};

/// Maximum length of a pattern, in bytes.
const PATTERN: usize = 1_000;
/// Maximum size of a compiled pattern, in bytes.
const BUILT: usize = 1 << 20;
/// Maximum nesting of a pattern.
const NESTED: u32 = 50;
/// Maximum number of characters shown of a line.
const SHOWN: usize = 400;
/// Characters that a line number counts as.
const NUMBER: usize = 12;

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This text, ignoring case.
    Text(String),
    /// A regular expression, in the syntax of the `regex` crate: no look-around, no back-references.
    Regex(String),
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The pattern is empty.
    #[error("the pattern is empty")]
    Empty,
    /// The pattern is too long.
    #[error("the pattern has {bytes} bytes, at most {limit} are allowed")]
    TooLong {
        /// Length of the pattern in bytes.
        bytes: usize,
        /// Largest length that is allowed.
        limit: usize,
    },
    /// The pattern is not a regular expression, or too large a one.
    #[error("the pattern is no regular expression that can be used: {reason}")]
    Regex {
        /// The error on one line.
        reason: String,
    },
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Matcher(Regex);

impl Matcher {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(pattern: &Pattern) -> Result<Self, PatternError> {
        let (Pattern::Text(source) | Pattern::Regex(source)) = pattern;
        if source.is_empty() {
            return Err(PatternError::Empty);
        }
        if source.len() > PATTERN {
            return Err(PatternError::TooLong {
                bytes: source.len(),
                limit: PATTERN,
            });
        }
        let literal = matches!(pattern, Pattern::Text(_));
        let escaped = literal.then(|| regex::escape(source));
        let built = RegexBuilder::new(escaped.as_deref().unwrap_or(source))
            .case_insensitive(literal)
            // Patterns come from a model: compiled size, lazy states and nesting are bounded, so that none is too
            // expensive.
            .size_limit(BUILT)
            .dfa_size_limit(BUILT)
            .nest_limit(NESTED)
            .build();
        built.map(Self).map_err(|error| {
            let said = error.to_string();
            let why = said.lines().next_back().unwrap_or_default().trim();
            let why = why.strip_prefix("error: ").unwrap_or(why);
            PatternError::Regex {
                reason: why.to_owned(),
            }
        })
    }

    /// Returns the offset of the first match on a line.
    fn first_match(&self, line: &str) -> Option<usize> {
        self.0.find(line).map(|found| found.start())
    }
}

/// Which matching lines are returned, and how many lines around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindOptions {
    /// The first line that is searched; lines are counted from 1.
    pub from: u64,
    /// Lines shown before and after each match.
    pub context: usize,
    /// Maximum number of matching lines shown.
    pub limit: usize,
    /// Maximum number of characters shown, where a line number counts as 12. The first match is always shown.
    pub characters: usize,
}

/// The lines that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// The lines shown, in order: matches, and what stands around them.
    pub lines: Vec<FoundLine>,
    /// Number of matching lines shown.
    pub shown: u64,
    /// Number of matching lines from [`FindOptions::from`] on.
    pub matches: u64,
    /// The first matching line that is not shown.
    pub next: Option<u64>,
}

/// A line that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLine {
    /// Its number; the first is 1.
    pub number: u64,
    /// The line, or the part around the match, with `…` where it was cut.
    pub text: String,
    /// Whether the line matches, or is context.
    pub matches: bool,
}

/// Finds the lines of a text that match.
///
/// ```
/// use contexture_condense::{FindOptions, Matcher, Pattern, find_lines};
///
/// let matcher = Matcher::new(&Pattern::Regex("^w\\d+".into()))?;
/// let which = FindOptions { from: 1, context: 0, limit: 10, characters: 1_000 };
/// let found = find_lines("w1 sent\nx2 lost\nw3 sent\n", &matcher, &which);
/// assert_eq!(found.matches, 2);
/// assert_eq!((found.lines[1].number, found.lines[1].text.as_str()), (3, "w3 sent"));
/// # Ok::<(), contexture_condense::PatternError>(())
/// ```
#[must_use]
pub fn find_lines(text: &str, matcher: &Matcher, which: &FindOptions) -> FoundLines {
    let mut page = ResultPage::new(which);
    let numbered = (1..).zip(text.lines());
    for (number, line) in numbered.skip_while(|(number, _)| *number < which.from) {
        match matcher.first_match(line) {
            Some(at) => page.push_match(number, line, at),
            None => page.push_unmatched_line(number, line),
        }
    }
    page.found
}

/// The lines shown so far.
struct ResultPage<'t> {
    which: FindOptions,
    room: usize,
    found: FoundLines,
    /// Preceding lines, which are shown if the next one matches.
    before: VecDeque<(u64, &'t str)>,
    /// How many lines after the last match are still to be shown.
    context_lines_due: usize,
}

impl<'t> ResultPage<'t> {
    fn new(which: &FindOptions) -> Self {
        Self {
            which: *which,
            room: which.characters,
            found: FoundLines::default(),
            before: VecDeque::new(),
            context_lines_due: 0,
        }
    }

    /// Adds a match. Room is reserved for the match before its context, and the first match is shown without room.
    fn push_match(&mut self, number: u64, line: &'t str, at: usize) {
        self.found.matches += 1;
        // Full: matches are still counted, so that the caller learns how many there are.
        if self.found.next.is_some() {
            return;
        }
        let text = clip_line(line, &clip_range(line, at, SHOWN));
        let cost = line_cost(&text);
        // At least one match is shown, whatever the limits: an empty reply would look like no match.
        let full = cost > self.room || self.found.shown >= self.which.limit as u64;
        if full && self.found.shown > 0 {
            self.found.next = Some(number);
            return;
        }
        self.room = self.room.saturating_sub(cost);
        for (number, line) in std::mem::take(&mut self.before) {
            self.push_context_line(number, line);
        }
        self.found.shown += 1;
        self.found.lines.push(FoundLine {
            number,
            text,
            matches: true,
        });
        self.context_lines_due = self.which.context;
    }

    fn push_unmatched_line(&mut self, number: u64, line: &'t str) {
        if self.found.next.is_some() || self.which.context == 0 {
            return;
        }
        if self.context_lines_due > 0 {
            self.context_lines_due -= 1;
            self.push_context_line(number, line);
            return;
        }
        // Buffered until the next match, of which it is then the context.
        if self.before.len() == self.which.context {
            self.before.pop_front();
        }
        self.before.push_back((number, line));
    }

    fn push_context_line(&mut self, number: u64, line: &str) {
        let text = clip_line(line, &clip_range(line, 0, SHOWN));
        let cost = line_cost(&text);
        if cost <= self.room {
            self.room -= cost;
            self.found.lines.push(FoundLine {
                number,
                text,
                matches: false,
            });
        }
    }
}

fn line_cost(shown: &str) -> usize {
    shown.chars().count() + NUMBER
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: FindOptions = FindOptions {
        from: 1,
        context: 0,
        limit: 100,
        characters: 100_000,
    };

    fn text(pattern: &str) -> Matcher {
        Matcher::new(&Pattern::Text(pattern.to_owned())).unwrap()
    }

    fn numbers(found: &FoundLines) -> Vec<u64> {
        found.lines.iter().map(|line| line.number).collect()
    }

    fn log() -> String {
        (1..=100).map(|n| format!("line {n}\r\n")).collect()
    }

    #[test]
    fn a_text_is_taken_literally_and_a_regex_is_not() {
        let said = "a.b\naxb\nA.B\n";
        assert_eq!(numbers(&find_lines(said, &text("a.b"), &WIDE)), [1, 3]);
        let regex = Matcher::new(&Pattern::Regex("a.b".to_owned())).unwrap();
        assert_eq!(numbers(&find_lines(said, &regex, &WIDE)), [1, 2]);
    }

    #[test]
    fn lines_around_a_match_are_shown_once() {
        let around = FindOptions { context: 2, ..WIDE };
        let found = find_lines(&log(), &text("line 5"), &around);
        // Lines 5, 50 to 59, and two on either side.
        assert_eq!(found.matches, 11);
        let expected: Vec<u64> = (3..=7).chain(48..=61).collect();
        assert_eq!(numbers(&found), expected);
        assert_eq!(found.lines[0].text, "line 3");
        assert_eq!(found.lines.iter().filter(|line| line.matches).count(), 11);
    }

    #[test]
    fn what_is_not_shown_is_counted_and_can_be_gone_on_with() {
        let mut from = 1;
        let mut seen = Vec::new();
        for characters in [0, 45, 60, 1_000] {
            let page = FindOptions {
                from,
                limit: 3,
                characters,
                ..WIDE
            };
            let found = find_lines(&log(), &text("line 5"), &page);
            assert_eq!(found.matches as usize + seen.len(), 11);
            assert!(found.shown >= 1);
            seen.extend(numbers(&found));
            from = found.next.unwrap_or(101);
        }
        assert_eq!(seen, [5, 50, 51, 52, 53, 54, 55, 56, 57]);
        let none = find_lines(&log(), &text("line 5"), &FindOptions { from: 60, ..WIDE });
        assert_eq!(none, FoundLines::default());
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let json = format!("{}needle{}", "a,".repeat(50_000), ",b".repeat(50_000));
        let found = find_lines(&json, &text("needle"), &WIDE);
        assert!(found.lines[0].text.contains("a,needle,b"));
        assert!(found.lines[0].text.chars().count() <= SHOWN + 2);
    }

    #[test]
    fn a_pattern_that_costs_too_much_is_refused() {
        for pattern in [
            "(a{1000}){1000}",
            "(",
            "(?<x>a)\\k<x>",
            "(?=a)",
            &"(".repeat(100),
        ] {
            let refused = Matcher::new(&Pattern::Regex(pattern.to_owned()));
            let error = refused.unwrap_err();
            assert!(
                matches!(error, PatternError::Regex { .. }),
                "{pattern}: {error}"
            );
            assert!(!error.to_string().contains('\n'), "{error}");
        }
        let long = Pattern::Text("x".repeat(1_001));
        assert!(matches!(
            Matcher::new(&long),
            Err(PatternError::TooLong { .. })
        ));
        let empty = Pattern::Text(String::new());
        assert_eq!(Matcher::new(&empty).unwrap_err(), PatternError::Empty);
    }
}
