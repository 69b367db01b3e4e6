//! The lines of a text that report errors.
//!
//! A line reports an error if it says one of a few words that compilers, interpreters, test runners, servers and
//! shells use for it; names of things (`error.rs`, `is_error`), denials (`0 errors`) and empty fields
//! (`"error": null`) do not count. This chooses what of an output is worth showing, nothing depends on it.
//!
//! Linear in the text: literals are found by one scan, and each line is looked at once. Of a text that is full of
//! them only the beginning and the end are looked at.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::cut_points::{clip_line, clip_range, count_feeds};

/// Words by which errors are reported, in lower case.
const WORDS: [&str; 12] = [
    "error",
    "exception",
    "traceback",
    "panic",
    "fatal",
    "failed",
    "failure",
    "cannot ",
    "denied",
    "not found",
    "timed out",
    "segmentation fault",
];

/// Characters shown of a line.
const SHOWN: usize = 160;

/// Lines that are kept at most, however many are asked for.
const MOST: usize = 100;

/// After so many words only the end of the text is looked at.
const MOST_WORDS: usize = 100_000;

/// How much of the end, in bytes.
const END: usize = 256 << 10;

static LITERALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let mut spellings = vec!["FAIL".to_owned(), "ERR!".to_owned()];
    for word in WORDS {
        let (first, rest) = word.split_at(1);
        spellings.push(word.to_owned());
        spellings.push(format!("{}{rest}", first.to_uppercase()));
        spellings.push(word.to_uppercase());
    }
    let pattern = Regex::new(&spellings.join("|"));
    debug_assert!(pattern.is_ok(), "words are a pattern");
    pattern.ok()
});

/// A line that reports an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorLine {
    /// Its number in the whole text; the first line is 1.
    pub(crate) number: u64,
    /// The line without white space at its end, in bytes of the whole text.
    pub(crate) range: Range<usize>,
    /// Where on the line the word stands that was found.
    word: usize,
}

impl ErrorLine {
    /// The line, shortened around the word that was found.
    pub(crate) fn shown_text(&self, text: &str) -> String {
        let line = self.line_text(text);
        clip_line(line, &clip_range(line, self.word, SHOWN))
    }

    /// What [`Self::shown`] shows of the whole text, in bytes.
    pub(crate) fn shown_range(&self, text: &str) -> Range<usize> {
        let clip = clip_range(self.line_text(text), self.word, SHOWN);
        self.range.start + clip.start..self.range.start + clip.end
    }

    fn line_text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.range.clone()).unwrap_or_default()
    }
}

/// Some of the lines that report errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorLineScan {
    /// The first and the last of them, in order, none twice.
    pub(crate) lines: Vec<ErrorLine>,
    /// How many were found.
    pub(crate) found: u64,
    /// Whether a part of the text was not looked at, because there are so many.
    pub(crate) is_partial: bool,
}

/// The lines of `text[range]` that report errors; at most `keep` of them, half from either end.
pub(crate) fn error_lines(text: &str, range: Range<usize>, keep: usize) -> ErrorLineScan {
    let (Some(literals), Some(text), 1..) = (&*LITERALS, text.get(..range.end), keep) else {
        return ErrorLineScan::default();
    };
    let mut kept = ErrorLineBuffer::new(keep);
    let mut line = line_around(text, range.start, range.start);
    let (mut at, mut counted, mut number) = (range.start, 0, 1);
    let mut words = 0;
    while let Some(found) = literals.find_at(text, at) {
        words += 1;
        let end = text.floor_char_boundary(text.len().saturating_sub(END));
        // A log with an error in every line would take long to scan; the end is still scanned, as the last
        // error is the one that matters.
        if words == MOST_WORDS && at < end {
            (at, kept.is_partial) = (end, true);
            continue;
        }
        if found.start() > line.end {
            line = line_around(text, line.end + 1, found.start());
        }
        let word = found.start() - line.start..found.end().min(line.end) - line.start;
        let said = text.get(line.clone()).unwrap_or_default();
        if !is_error_line(said, &word) {
            at = found.end();
            continue;
        }
        // Counted from the last line found, so the whole text is counted once.
        number += count_feeds(text.get(counted..line.start).unwrap_or_default());
        counted = line.start;
        at = (line.end + 1).min(text.len());
        let found = ErrorLine {
            number,
            range: line.start..line.start + said.trim_end().len(),
            word: word.start,
        };
        kept.add_line(found, text);
    }
    kept.finish()
}

/// The line that `at` stands on, in bytes and without its line feed; it begins at `from` or later.
fn line_around(text: &str, from: usize, at: usize) -> Range<usize> {
    let before = text.get(from..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(from, |feed| from + feed + 1);
    let rest = text.get(at..).unwrap_or_default();
    start..rest.find('\n').map_or(text.len(), |feed| at + feed)
}

/// Whether the word found on a line reports an error.
fn is_error_line(line: &str, word: &Range<usize>) -> bool {
    let (before, rest) = (line.get(..word.start), line.get(word.start..));
    let (Some(before), Some(rest)) = (before, rest) else {
        return false;
    };
    let capital = rest.starts_with(|first: char| first.is_ascii_uppercase());
    // `TypeError` and `MY_ERROR` report, `is_error` and `mirror` do not.
    let joined = |c: char| matches!(c, '-' | '/') || !capital && (c == '_' || c.is_alphanumeric());
    if before.ends_with(joined) {
        return false;
    }
    let denied = ["0", "no", "No", "without"].iter().any(|denial| {
        let rest = before
            .strip_suffix(' ')
            .and_then(|said| said.strip_suffix(denial));
        rest.is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
    });
    let after = line.get(word.end..).unwrap_or_default();
    let after = after.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let empty = !capital && is_empty_field(after);
    !denied && !is_part_of_name(after) && !empty
}

/// Whether what follows a word makes it a name: `error.rs`, `error_code`, `errors/`.
fn is_part_of_name(after: &str) -> bool {
    let mut following = after.chars();
    match following.next() {
        Some('_' | '/' | '-' | '\\') => true,
        Some('.') => following.next().is_some_and(char::is_alphanumeric),
        _ => false,
    }
}

/// Whether what follows a word says that there is none: `": null`, `=0`.
fn is_empty_field(after: &str) -> bool {
    let after = after.trim_start_matches(['"', '\'']);
    let Some(value) = after.strip_prefix([':', '=']) else {
        return false;
    };
    let value = value.strip_prefix(' ').unwrap_or(value);
    let empty = ["null", "None", "nil", "false", "\"\"", "[]", "{}"];
    let zero = value
        .strip_prefix('0')
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'));
    zero || empty.iter().any(|empty| value.starts_with(empty))
}

/// The first and the last lines of many, none twice.
struct ErrorLineBuffer {
    first: Vec<ErrorLine>,
    last: VecDeque<ErrorLine>,
    keep: usize,
    found: u64,
    is_partial: bool,
}

impl ErrorLineBuffer {
    fn new(keep: usize) -> Self {
        Self {
            first: Vec::new(),
            last: VecDeque::new(),
            keep: keep.min(MOST),
            found: 0,
            is_partial: false,
        }
    }

    fn add_line(&mut self, line: ErrorLine, text: &str) {
        self.found += 1;
        let said = line.line_text(text);
        let same = |other: &ErrorLine| other.line_text(text) == said;
        // A retried step reports the same error many times: shown once.
        if self.first.iter().chain(&self.last).any(same) {
            return;
        }
        let room = self.keep / 2;
        if self.first.len() < self.keep - room {
            self.first.push(line);
        } else if room > 0 {
            if self.last.len() == room {
                self.last.pop_front();
            }
            self.last.push_back(line);
        }
    }

    fn finish(self) -> ErrorLineScan {
        let lines = self.first.into_iter().chain(self.last).collect();
        ErrorLineScan {
            lines,
            found: self.found,
            is_partial: self.is_partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str, keep: usize) -> (Vec<u64>, u64) {
        let lines = error_lines(text, 0..text.len(), keep);
        let numbers = lines.lines.iter().map(|line| line.number).collect();
        (numbers, lines.found)
    }

    #[test]
    fn what_reports_an_error_and_what_does_not() {
        for report in [
            "error[E0308]: mismatched types",
            "Error: listen EADDRINUSE",
            "src/main.rs:3: error: expected `;`",
            "Traceback (most recent call last):",
            "ValueError('x')",
            "java.lang.NullPointerException: null",
            "thread 'main' panicked at src/main.rs:2:5",
            "2 tests failed",
            "--- FAIL: TestParse (0.00s)",
            "FAILED tests/test_a.py::test_b - assert 1 == 2",
            "npm ERR! code ELIFECYCLE",
            "bash: foo: command not found",
            "rm: cannot remove 'x': No such file",
            "{\"error\": \"refused\"}",
            "MY_ERROR happened",
            "10 errors generated.",
            "level=ERROR msg=x",
            "FATAL:  role does not exist",
        ] {
            assert_eq!(numbers(report, 9).1, 1, "{report}");
        }
        for other in [
            "0 errors, 0 warnings",
            "no error",
            "finished without errors",
            "src/error.rs",
            "errors/mod.ts",
            "is_error",
            "a mirror in the terror",
            "{\"error\": null, \"is_error\": false}",
            "error: 0",
            "failed=0",
            "def error_of(x):",
            "the rest",
        ] {
            assert_eq!(numbers(other, 9).1, 0, "{other}");
        }
    }

    #[test]
    fn lines_are_numbered_and_taken_from_both_ends_once() {
        let text: String = (1..=100)
            .map(|n| match n % 10 {
                0 => format!("error {n}\n"),
                5 => "error: the same\n".to_owned(),
                _ => format!("is_error {n}\n"),
            })
            .collect();
        assert_eq!(numbers(&text, 4), (vec![5, 10, 90, 100], 20));
        assert_eq!(numbers(&text, 1), (vec![5], 20));
        assert_eq!(numbers(&text, 0), (vec![], 0));
        let from = text.find("error 50").unwrap();
        let lines = error_lines(&text, from..text.len(), 1);
        assert_eq!(
            (
                lines.lines[0].number,
                lines.lines[0].shown_text(&text).as_str()
            ),
            (50, "error 50")
        );
    }

    #[test]
    fn of_a_text_full_of_words_only_the_ends_are_looked_at() {
        let count = 2 * MOST_WORDS;
        let text: String = (1..=count).map(|n| format!("error {n}\n")).collect();
        let lines = error_lines(&text, 0..text.len(), 4);
        let numbers: Vec<u64> = lines.lines.iter().map(|line| line.number).collect();
        let last = count as u64;
        assert_eq!(numbers, [1, 2, last - 1, last]);
        let said: Vec<String> = lines
            .lines
            .iter()
            .map(|line| line.shown_text(&text))
            .collect();
        assert_eq!(said[3], format!("error {count}"));
        assert!(lines.is_partial && (MOST_WORDS as u64..last).contains(&lines.found));
        // Words that report nothing count too, and a line is not cut where looking goes on.
        let text = format!("{}{{\"error\":1}}", "{\"error\":0}".repeat(count));
        let lines = error_lines(&text, 0..text.len(), 4);
        assert_eq!((lines.found, lines.is_partial), (1, true));
        let shown = lines.lines[0].shown_text(&text);
        assert!(shown.starts_with('…'), "{shown}");
        assert!(shown.ends_with("{\"error\":0}{\"error\":1}"), "{shown}");
        let few = "error\n".repeat(MOST_WORDS - 1);
        assert!(!error_lines(&few, 0..few.len(), 4).is_partial);
    }

    #[test]
    fn a_line_cut_by_the_range_is_seen_within_it() {
        let text = "error error\r\nx error";
        let lines = error_lines(text, 6..text.len() - 5, 9);
        assert_eq!(lines.lines.len(), 1);
        assert_eq!(lines.lines[0].shown_text(text), "error");
        assert_eq!(&text[lines.lines[0].range.clone()], "error");
    }
}
