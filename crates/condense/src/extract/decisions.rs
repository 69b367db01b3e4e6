//! Sentences: those that decide something, and how long texts are shortened.
//!
//! The rules know English words only. What they miss is missing from the list of decisions, not from the
//! conversation: every fact in it is found elsewhere.

use contexture_ir::Role;

/// The shortest and the longest sentence that is taken for a decision, in bytes.
const DECISION: std::ops::RangeInclusive<usize> = 12..=280;

/// By which words a person decides.
const PERSON: &[&str] = &[
    "must ",
    "must not",
    "don't ",
    "do not ",
    "never ",
    "always ",
    "prefer ",
    "instead",
    "only ",
    "make sure",
    "go ahead",
    "i want ",
    "i'd like ",
    "i would like ",
    "i need ",
    "should ",
    "shouldn't ",
    "no need",
    "rather than",
    "agree",
    "confirm",
    "yes",
    "cancel",
];

/// By which words a model decides.
const MODEL: &[&str] = &[
    "decided",
    "i will ",
    "i'll ",
    "we will ",
    "we'll ",
    "let's ",
    "instead of",
    "rather than",
    "root cause",
    "turns out",
    "the fix ",
    "the problem is",
    "the issue is",
    "the bug is",
    "fixed by",
    "confirmed",
    "must ",
    "cannot be",
    "not allowed",
    "chose ",
    "going with",
    "has been ",
    "successfully",
];

/// The sentences of a text that decide something, in order.
pub(crate) fn decision_sentences(role: Role, text: &str) -> impl Iterator<Item = &str> {
    let words = if role == Role::User { PERSON } else { MODEL };
    split_sentences(text).filter(move |sentence| {
        let lower = sentence.to_lowercase();
        // Very short sentences decide nothing, very long ones are data.
        DECISION.contains(&sentence.len()) && words.iter().any(|word| lower.contains(word))
    })
}

/// A text's sentences: cut at line ends and behind `.`, `!`, `?` before white space.
fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = rest
                .char_indices()
                .zip(rest.chars().skip(1))
                .find(|((_, c), next)| ".!?".contains(*c) && next.is_whitespace())
                .map_or(rest.len(), |((at, c), _)| at + c.len_utf8());
            let (sentence, behind) = rest.split_at(end);
            rest = behind.trim_start();
            Some(sentence.trim())
        })
    })
}

/// One line of at most about `limit` bytes: white space is made one, and of what is longer the beginning
/// and the end are kept, with the number of characters between them.
pub(crate) fn shorten_line(text: &str, limit: usize) -> String {
    head_and_tail(&one_line(text), limit)
}

/// The beginning and the end of what is longer than `limit` bytes, with the number of characters between.
pub(crate) fn head_and_tail(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    // The beginning says what it is; the end often has the result.
    let (head, tail) = (limit / 4 * 3, limit / 4);
    let head = text
        .get(..floor_char_boundary(text, head))
        .unwrap_or_default();
    let tail = text
        .get(ceil_char_boundary(text, text.len() - tail)..)
        .unwrap_or_default();
    let between = text
        .get(head.len()..text.len() - tail.len())
        .map_or(0, |middle| middle.chars().count());
    format!(
        "{} [… {between} characters …] {}",
        head.trim_end(),
        tail.trim_start()
    )
}

/// The text without line breaks and control characters, so that no entry can pass for more than a line.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let blank = |c: char| c.is_whitespace() || c.is_control();
    for word in text.split(blank).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The last character boundary at or before `at`.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// The first character boundary at or after `at`.
fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_decide_are_found() {
        let text = "Hello there. Please never push to main! I was born in May.\nUse tabs instead.";
        let found: Vec<&str> = decision_sentences(Role::User, text).collect();
        assert_eq!(found, ["Please never push to main!", "Use tabs instead."]);
        let model = "I looked around. I'll edit a.py because v1.2 is old. Nice.";
        let found: Vec<&str> = decision_sentences(Role::Assistant, model).collect();
        assert_eq!(found, ["I'll edit a.py because v1.2 is old."]);
    }

    #[test]
    fn shortening_keeps_both_ends_and_says_how_much_is_gone() {
        assert_eq!(shorten_line("a\n b\t\u{0}c", 20), "a b c");
        let long = format!("{}{}", "ä".repeat(100), "ö".repeat(100));
        let short = shorten_line(&long, 41);
        assert!(
            short.starts_with("äääääääääääääää [… 180 characters …] ööööö"),
            "{short}"
        );
    }
}
