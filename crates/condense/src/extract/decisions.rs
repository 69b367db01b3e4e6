//! Splits what people and models say into sentences, and tells those that state something from those that only go on.
//!
//! The rules know English words only. Rules, wishes and facts in other languages are found by `standing_rules`; any other
//! sentence that is missed is ranked lower, and the facts in it are still found by the other readers.

/// Length of a sentence that may state a decision, in bytes.
const DECISION: std::ops::RangeInclusive<usize> = 12..=280;

/// Words by which a person states a rule, a wish, a decision or a fact about themselves. `*` stands for any ending.
const PERSON: &[&str] = &[
    "must",
    "don't",
    "do not",
    "never",
    "always",
    "prefer*",
    "instead",
    "only",
    "make sure",
    "go ahead",
    "i want",
    "i'd like",
    "i would like",
    "i need",
    "should",
    "shouldn't",
    "no need",
    "rather than",
    "agree",
    "agreed",
    "confirm",
    "confirmed",
    "yes",
    "cancel",
    "decided",
    "allerg*",
    "budget*",
    "call me",
    "from now on",
    "whenever",
    "remember",
    "important*",
    "at most",
    "at least",
    "no more than",
    "up to",
    "deadline*",
];

/// First words of a statement of a person about themselves and theirs, wherever they stand in a sentence.
const FIRST_PERSON: &[&str] = &[
    "i am", "i'm", "i was", "i have", "i've", "i live", "i work", "i use", "i can", "i can't",
    "my", "our", "we are", "we're", "we have", "we use", "we need", "we want", "mine", "i like",
    "i love", "i hate",
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

/// Whether a sentence of a person states something that holds on: a rule, a wish, a decision, a fact.
pub(crate) fn is_statement(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let begins_word = |at: usize| {
        let before = lower
            .get(..at)
            .and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric())
    };
    let ends_word = |at: usize| {
        let behind = lower.get(at..).and_then(|behind| behind.chars().next());
        behind.is_none_or(|c| !c.is_alphanumeric())
    };
    let says = |words: &&str| {
        let (words, any_end) = match words.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (*words, false),
        };
        let mut found = lower.match_indices(words);
        found.any(|(at, word)| begins_word(at) && (any_end || ends_word(at + word.len())))
    };
    PERSON.iter().chain(FIRST_PERSON).any(says)
}

/// Returns the sentences of a model that state a decision, in order.
pub(crate) fn decision_sentences(text: &str) -> impl Iterator<Item = &str> {
    split_sentences(text).filter(|sentence| {
        let lower = sentence.to_lowercase();
        // Very short sentences state no decision, very long ones are data.
        DECISION.contains(&sentence.len()) && MODEL.iter().any(|word| lower.contains(word))
    })
}

/// Splits a text into sentences: at line ends, and after `.`, `!` or `?` before white space.
pub(crate) fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
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
    fn sentences_that_state_something_are_found() {
        let text = "Hello there. Please never push to main! I'm born in May.\nUse tabs instead. What is that? Amy sings.";
        let found: Vec<&str> = split_sentences(text)
            .filter(|one| is_statement(one))
            .collect();
        assert_eq!(
            found,
            [
                "Please never push to main!",
                "I'm born in May.",
                "Use tabs instead."
            ]
        );
        for passes in [
            "The page shows the wrong total since yesterday.",
            "Look at the confirmation page.",
            "They disagreed about mustard.",
        ] {
            assert!(!is_statement(passes), "{passes}");
        }
        let model = "I looked around. I'll edit a.py because v1.2 is old. Nice.";
        let found: Vec<&str> = decision_sentences(model).collect();
        assert_eq!(found, ["I'll edit a.py because v1.2 is old."]);
    }
}
