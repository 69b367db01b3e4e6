//! Ranks texts by how well they answer a query.
//!
//! People and models search for what they remember, mostly an identifier. So the query as a whole ranks first: in the
//! same spelling as a separate word, then as part of a longer token (`10` in `10:30`), then inside a word, then in
//! another case; single words of the query rank last. Among equals the newer text is better.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

/// Maximum number of words of a query that are used.
const WORDS: usize = 16;
/// Maximum number of bytes of a query that are used.
const QUERY: usize = 1_000;

/// A compiled query.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    phrase: String,
    anywhere: Option<Regex>,
    words: Vec<Regex>,
}

/// How well a text answers a query; greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    phrase: PhraseMatch,
    words: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PhraseMatch {
    Absent,
    OtherCase,
    PartOfWord,
    Whole,
    Apart,
}

impl SearchQuery {
    /// Compiles a query from any text. Only the first 1,000 bytes and 16 words are used.
    #[must_use]
    pub fn new(query: &str) -> Self {
        // Bounded: a long pasted text would be compiled into a pattern of its size.
        let end = query.floor_char_boundary(QUERY);
        let phrase = query.get(..end).unwrap_or_default().trim();
        let bare = |word: &'_ str| match word.trim_matches(|c: char| !c.is_alphanumeric()) {
            "" => word.to_owned(),
            bare => bare.to_owned(),
        };
        let words = phrase.split_whitespace().map(bare);
        // A query of a single word is the phrase itself.
        let words = words.filter(|word| word != phrase);
        let words = words.filter_map(|word| literal_regex(&word));
        Self {
            phrase: phrase.to_owned(),
            anywhere: literal_regex(phrase),
            words: words.take(WORDS).collect(),
        }
    }

    /// Scores a text, and returns the range of the match in bytes; `None` if nothing of the query occurs.
    #[must_use]
    pub fn score_text(&self, text: &str) -> Option<(Score, Range<usize>)> {
        let mut best: Option<(PhraseMatch, Range<usize>)> = None;
        for found in self.anywhere.iter().flat_map(|query| query.find_iter(text)) {
            let phrase = self.classify_phrase_match(text, &found.range());
            if best.as_ref().is_none_or(|(best, _)| phrase > *best) {
                best = Some((phrase, found.range()));
            }
            // The best possible match: the rest of a long text need not be searched.
            if phrase == PhraseMatch::Apart {
                break;
            }
        }
        if let Some((phrase, at)) = best {
            let words = self.words.len();
            return Some((Score { phrase, words }, at));
        }
        // Only if the phrase does not occur: single words are a weaker match than any form of the phrase.
        let mut found = self.words.iter().filter_map(|word| word.find(text));
        let first = found.next()?.range();
        let words = 1 + found.count();
        let phrase = PhraseMatch::Absent;
        Some((Score { phrase, words }, first))
    }

    fn classify_phrase_match(&self, text: &str, at: &Range<usize>) -> PhraseMatch {
        if text.get(at.clone()) != Some(&self.phrase) {
            return PhraseMatch::OtherCase;
        }
        let in_word = |c: char| c == '_' || c.is_alphanumeric();
        let before = text.get(..at.start).unwrap_or_default();
        let after = text.get(at.end..).unwrap_or_default();
        if before.ends_with(in_word) || after.starts_with(in_word) {
            return PhraseMatch::PartOfWord;
        }
        let joins = |c: &char| "-.,:/@".contains(*c);
        let joined = |outwards: &mut dyn Iterator<Item = char>| {
            outwards.next().as_ref().is_some_and(joins) && outwards.next().is_some_and(in_word)
        };
        if joined(&mut before.chars().rev()) || joined(&mut after.chars()) {
            PhraseMatch::Whole
        } else {
            PhraseMatch::Apart
        }
    }
}

fn literal_regex(text: &str) -> Option<Regex> {
    let built = RegexBuilder::new(&regex::escape(text))
        .case_insensitive(true)
        .build();
    built.ok().filter(|_| !text.is_empty())
}

/// The best of many results, offered oldest first.
#[derive(Clone, Debug)]
pub struct Ranking<T> {
    best: Vec<(Score, T)>,
    keep: usize,
    offered: u64,
}

impl<T> Ranking<T> {
    /// Creates a ranking that keeps the best `keep` results.
    #[must_use]
    pub const fn new(keep: usize) -> Self {
        Self {
            best: Vec::new(),
            keep,
            offered: 0,
        }
    }

    /// Offers a result that is newer than all before it.
    pub fn offer(&mut self, relevance: Score, one: impl FnOnce() -> T) {
        self.offered += 1;
        // After better results and before equal ones, so that among equals the newest is first.
        let at = self.best.partition_point(|(other, _)| *other > relevance);
        if at < self.keep {
            self.best.insert(at, (relevance, one()));
            self.best.truncate(self.keep);
        }
    }

    /// Returns how many results were offered.
    #[must_use]
    pub const fn offered_count(&self) -> u64 {
        self.offered
    }

    /// Returns the best results, best first; among equals the newest first.
    #[must_use]
    pub fn into_ranked(self) -> Vec<T> {
        self.best.into_iter().map(|(_, one)| one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts in the order in which they answer, the first being the newest.
    fn ranked<'t>(query: &str, newest_first: &[&'t str]) -> Vec<&'t str> {
        let needle = SearchQuery::new(query);
        let mut ranking = Ranking::new(10);
        for text in newest_first.iter().rev() {
            if let Some((relevance, at)) = needle.score_text(text) {
                assert!(text.get(at.clone()).is_some_and(|found| !found.is_empty()));
                ranking.offer(relevance, || *text);
            }
        }
        ranking.into_ranked()
    }

    #[test]
    fn an_identifier_as_it_stands_comes_before_what_looks_like_it() {
        let texts = [
            "W1234567 and more",
            "order w123456",
            "something else",
            "xW123456",
            "the order #W123456 was sent",
            "{\"id\":\"W123456\"}",
        ];
        assert_eq!(
            ranked("W123456", &texts),
            [
                "the order #W123456 was sent",
                "{\"id\":\"W123456\"}",
                "W1234567 and more",
                "xW123456",
                "order w123456",
            ]
        );
    }

    #[test]
    fn a_number_by_itself_comes_before_one_that_is_part_of_another() {
        let texts = ["at 10:30", "2024-05-10", "$10.50", "10 bags.", "310"];
        assert_eq!(ranked("10", &texts)[0], "10 bags.");
        assert_eq!(
            ranked("main.rs", &["src/main.rs", "main.rs, and more", "main.rs."])[0],
            "main.rs, and more"
        );
    }

    #[test]
    fn words_count_where_the_whole_is_nowhere() {
        let texts = [
            "gloves",
            "the refund of gloves",
            "refund gloves now",
            "hats",
        ];
        assert_eq!(
            ranked("refund, gloves", &texts),
            ["the refund of gloves", "refund gloves now", "gloves"]
        );
        assert_eq!(ranked("refund gloves", &texts)[0], "refund gloves now");
    }

    #[test]
    fn paths_numbers_and_signs_are_found_as_they_are() {
        for query in [
            "src/main.rs:12",
            "$1,024.50",
            "C:\\temp\\a b",
            "error[E0308]",
            "東京",
            "-->",
        ] {
            let text = format!("before {query} after");
            assert_eq!(ranked(query, &["nothing", &text]), [&text], "{query}");
        }
    }

    #[test]
    fn nothing_is_found_by_nothing() {
        assert!(ranked("", &["a"]).is_empty());
        assert!(ranked(" \n", &["a"]).is_empty());
        assert_eq!(ranked(&"word ".repeat(10_000), &["a word"]), ["a word"]);
    }

    #[test]
    fn only_the_best_are_kept_and_all_are_counted() {
        let needle = SearchQuery::new("x");
        let mut ranking = Ranking::new(2);
        for (n, text) in ["x 3", "x 2", "xb", "x 1", "xa"].iter().enumerate() {
            let (relevance, _) = needle.score_text(text).unwrap();
            ranking.offer(relevance, || n);
        }
        assert_eq!(
            (ranking.offered_count(), ranking.into_ranked()),
            (5, vec![3, 1])
        );
    }
}
