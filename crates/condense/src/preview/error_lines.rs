//! Finds the lines of a text that report errors.
//!
//! A line reports an error if it contains one of a few words that compilers, interpreters, test runners, servers and
//! shells use for it; names (`error.rs`, `is_error`), negations (`0 errors`) and empty fields (`"error": null`) do not
//! count. This only chooses what of an output to show; nothing else depends on it.
//!
//! Linear in the text: words are found in one scan, and each line is checked once per word. Of a text with very many of
//! them only the beginning and the end are scanned.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::cut_points::{clip_line, clip_range, count_feeds};

/// Words that report errors, in lower case.
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

/// Maximum number of characters shown of a line.
const SHOWN: usize = 160;

/// Maximum number of lines returned, however many are asked for.
const MAX_LINES: usize = 100;

/// Number of words after which only the end of the text is scanned.
const MOST_WORDS: usize = 100_000;

/// Length of that end, in bytes.
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
    /// Range of the line in the whole text, in bytes, without trailing white space.
    pub(crate) range: Range<usize>,
    /// Offset in the line of the word that was found.
    word: usize,
}

impl ErrorLine {
    /// Returns the line, shortened around the word that was found.
    pub(crate) fn shown_text(&self, text: &str) -> String {
        let line = self.line_text(text);
        clip_line(line, &clip_range(line, self.word, SHOWN))
    }

    /// Returns the range of the whole text that [`Self::shown_text`] shows, in bytes.
    pub(crate) fn shown_range(&self, text: &str) -> Range<usize> {
        let clip = clip_range(self.line_text(text), self.word, SHOWN);
        self.range.start + clip.start..self.range.start + clip.end
    }

    fn line_text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.range.clone()).unwrap_or_default()
    }
}

/// Result of a scan for lines that report errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorLineScan {
    /// The first and the last lines found, in order, without duplicates.
    pub(crate) lines: Vec<ErrorLine>,
    /// Number of lines found, duplicates included.
    pub(crate) found: u64,
    /// Whether a part of the text was skipped, because it has too many words.
    pub(crate) is_partial: bool,
}

/// Scans `text[range]` for lines that report errors, and returns at most `keep` of them, half from either end.
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
        // Scanning a log with an error on every line would take long; the end is still scanned, because the last error
        // matters most.
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
        // Counted from the last line found, so that the whole text is counted once.
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

/// Returns the range in bytes of the line that contains `at`, without its line feed; it starts at `from` or later.
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
    // `TypeError` and `MY_ERROR` report an error, `is_error` and `mirror` do not.
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

/// Whether the text after a word makes it part of a name: `error.rs`, `error_code`, `errors/`.
fn is_part_of_name(after: &str) -> bool {
    let mut following = after.chars();
    match following.next() {
        Some('_' | '/' | '-' | '\\') => true,
        Some('.') => following.next().is_some_and(char::is_alphanumeric),
        _ => false,
    }
}

/// Whether the text after a word is an empty value: `": null`, `=0`.
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

/// The first and the last of many lines, without duplicates.
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
            keep: keep.min(MAX_LINES),
            found: 0,
            is_partial: false,
        }
    }

    fn add_line(&mut self, line: ErrorLine, text: &str) {
        self.found += 1;
        let said = line.line_text(text);
        let same = |other: &ErrorLine| other.line_text(text) == said;
        // A retried step reports the same error many times; it is shown once.
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
        // Words that report nothing count too, and a line is not split where scanning continues.
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
