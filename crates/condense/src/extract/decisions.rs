//! Finds sentences that state a decision.
//!
//! The rules know English words only. A decision they miss is missing from the list of decisions, while the facts in it
//! are still found by the other readers.

use contexture_ir::Role;

/// Length of a sentence that may be a decision, in bytes.
const DECISION: std::ops::RangeInclusive<usize> = 12..=280;

/// Words that mark a decision of a person.
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

/// Words that mark a decision of a model.
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

/// Returns the sentences of a text that state a decision, in order.
pub(crate) fn decision_sentences(role: Role, text: &str) -> impl Iterator<Item = &str> {
    let words = if role == Role::User { PERSON } else { MODEL };
    split_sentences(text).filter(move |sentence| {
        let lower = sentence.to_lowercase();
        // Very short sentences state no decision, very long ones are data.
        DECISION.contains(&sentence.len()) && words.iter().any(|word| lower.contains(word))
    })
}

/// Splits a text into sentences: at line ends, and after `.`, `!` or `?` before white space.
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
}
