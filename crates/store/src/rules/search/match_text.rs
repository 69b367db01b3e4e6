//! Matches a text against a query: whether it matches, with what score, and at which places.
//!
//! The score depends on the query and the text alone: a hit counts more the more often and the
//! more densely a piece occurs, each further occurrence for less. It is whole-number arithmetic, so
//! every backend and machine ranks alike, and nobody's texts move another's scores. Where any piece
//! will do, each has a weight besides.
//!
//! Not here: which texts are asked about, what pieces weigh.

use std::ops::Range;

use super::idf::{IdfWeight, ONE};
use super::query::{IndexCondition, Query, QueryPhrase, QueryTerm, TermExtent};
use contexture_text::search_terms::{Purpose, Term, visit_terms};

/// Match of a query in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMatch {
    /// Score of the text; higher is better. Comparable within one query only.
    pub score: u32,
    /// Byte ranges of the text in which pieces occur, in order, not overlapping.
    pub places: Vec<Range<usize>>,
}

/// Occurrence of a wanted term in a text.
#[derive(Clone, Copy)]
struct MatchRange {
    position: u32,
    start: usize,
    end: usize,
}

/// Looks for all pieces of a query; `None` if one is missing.
#[must_use]
pub fn match_all(query: &Query, text: &str) -> Option<TextMatch> {
    if query.is_empty() {
        return None;
    }
    let seen = find_phrases(query, text);
    let has_all = seen.pieces.iter().all(|places| !places.is_empty());
    has_all.then(|| seen.into_text_match(|_| ONE))
}

/// Looks for any piece of a query, each weighing what it is given; `None` if all are missing that are
/// looked for.
pub(super) fn match_any(query: &Query, weights: &[IdfWeight], text: &str) -> Option<TextMatch> {
    let seen = find_phrases(query, text);
    let mut both = seen.pieces.iter().zip(weights);
    let has_any = both.any(|(places, weight)| weight.looked_for && !places.is_empty());
    has_any.then(|| seen.into_text_match(|piece| weights.get(piece).map_or(0, |one| one.factor)))
}

/// Which pieces of a query an index proposes a text for: those all of whose terms it has, side by side
/// or not.
#[must_use]
pub(crate) fn phrases_with_all_terms(query: &Query, text: &str) -> Vec<bool> {
    let mut missing: Vec<Vec<IndexCondition<'_>>> = query.phrase_conditions();
    visit_terms(text, Purpose::Index, |term| {
        for conditions in &mut missing {
            conditions.retain(|wanted| match wanted.prefix {
                true => !term.text.starts_with(wanted.term),
                false => term.text != wanted.term,
            });
        }
    });
    missing.iter().map(Vec::is_empty).collect()
}

/// Occurrences of a query's pieces in a text.
struct QueryMatches {
    /// Byte ranges of each piece, in the order of the query.
    pieces: Vec<Vec<Range<usize>>>,
    /// Number of terms in the text.
    length: u64,
}

impl QueryMatches {
    fn into_text_match(self, factor: impl Fn(usize) -> u32) -> TextMatch {
        let mut found = TextMatch {
            score: 0,
            places: Vec::new(),
        };
        for (piece, places) in self.pieces.into_iter().enumerate() {
            let score = bm25_score(places.len() as u64, self.length);
            let weighted = score.saturating_mul(factor(piece)) / ONE;
            found.score = found.score.saturating_add(weighted);
            found.places.extend(places);
        }
        found.places = merge_ranges(found.places);
        found
    }
}

fn find_phrases(query: &Query, text: &str) -> QueryMatches {
    let wanted: Vec<&QueryTerm> = query.pieces.iter().flat_map(|piece| &piece.terms).collect();
    let mut occurrences: Vec<Vec<MatchRange>> = vec![Vec::new(); wanted.len()];
    let mut length: u64 = 0;
    visit_terms(text, Purpose::Index, |term| {
        length += 1;
        for (wanted, occurrences) in wanted.iter().zip(&mut occurrences) {
            let Some(end) = wanted.end_in(&term) else {
                continue;
            };
            match occurrences.last_mut() {
                // `c` and `c++` have one position.
                Some(last) if last.position == term.position => last.end = last.end.max(end),
                _ => occurrences.push(MatchRange {
                    position: term.position,
                    start: term.start,
                    end,
                }),
            }
        }
    });
    let mut rest = occurrences.as_slice();
    let pieces = query.pieces.iter().map(|piece| {
        let (own, others) = rest.split_at(piece.terms.len().min(rest.len()));
        rest = others;
        piece.find_ranges(own)
    });
    QueryMatches {
        pieces: pieces.collect(),
        length,
    }
}

/// BM25's curve with k = 1.2 and b = 0.75 for an average text of 100 terms, times 1,000; at most
/// 2,200.
fn bm25_score(times: u64, length: u64) -> u32 {
    let times = times.saturating_mul(1000);
    let norm = 300 + length.saturating_mul(9);
    let score = times.saturating_mul(2200) / times.saturating_add(norm);
    u32::try_from(score).unwrap_or(u32::MAX)
}

impl QueryTerm {
    /// Where the wanted part of a term ends, if the term is the one.
    fn end_in(&self, term: &Term<'_>) -> Option<usize> {
        match self.extent {
            TermExtent::Whole => (term.text == self.text).then_some(term.end),
            TermExtent::Beginning => term.text.starts_with(&self.text).then_some(term.end),
            TermExtent::FirstCharacter => {
                term.text.starts_with(&self.text).then_some(term.first_end)
            }
        }
    }
}

impl QueryPhrase {
    /// Where the terms stand side by side; `occurrences` are those of each term, by position.
    fn find_ranges(&self, occurrences: &[Vec<MatchRange>]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let Some((first, others)) = occurrences.split_first() else {
            return places;
        };
        let offsets = self.terms.iter().skip(1).map(|wanted| wanted.offset);
        let others: Vec<(u32, &Vec<MatchRange>)> = offsets.zip(others).collect();
        for begin in first {
            let mut end = begin.end;
            let side_by_side = others.iter().all(|(offset, occurrences)| {
                let position = begin.position.saturating_add(*offset);
                let at = occurrences.partition_point(|one| one.position < position);
                let next = occurrences.get(at).filter(|one| one.position == position);
                next.is_some_and(|one| {
                    end = end.max(one.end);
                    true
                })
            });
            if side_by_side {
                places.push(begin.start..end);
            }
        }
        places
    }
}

/// By place; what overlaps becomes one.
fn merge_ranges(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let mut out: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for place in places {
        match out.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => out.push(place),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(query: &str, text: &str) -> String {
        let found = match_all(&Query::parse(query), text);
        let shown = |found: TextMatch| {
            let places = found.places.into_iter();
            let places: Vec<&str> = places.map(|place| &text[place]).collect();
            places.join("|")
        };
        found.map_or_else(|| "-".to_owned(), shown)
    }

    #[test]
    fn pieces_are_found_whole() {
        for (query, text, expected) in [
            ("b", "a b c b", "b|b"),
            ("b a", "a b", "a|b"),
            ("a-b", "a. B, b a", "a. B"),
            ("\"a b\" c", "c a b", "c|a b"),
            ("a-b", "b a", "-"),
            ("a d", "a b c", "-"),
            ("str*", "Straße astr", "Straße"),
            ("\"a st\"*", "a b a street", "a street"),
            ("c", "C++ c", "C|c"),
            ("c++", "C++ c", "C++"),
            ("c*", "c++ c", "c++|c"),
            ("京", "東京都", "京"),
            ("京都", "東京都", "京都"),
            ("東京都", "大東京都", "東京都"),
            ("東都", "東京都", "-"),
            ("が", "ｶﾞ が", "が"),
            ("가", "가나 각", "가"),
            ("\"a b c\"", "a b a b c", "a b c"),
            ("a a-b", "a b", "a b"),
            ("", "a", "-"),
            ("👍", "so 👍🏽!", "👍🏽"),
        ] {
            assert_eq!(places(query, text), expected, "{query} in {text}");
        }
    }

    #[test]
    fn more_and_denser_is_better() {
        let score = |text: &str| match_all(&Query::parse("a"), text).unwrap().score;
        assert!(score("a a b") > score("a b b"));
        assert!(score("a b") > score(&format!("a {}", "b ".repeat(100))));
        assert!(score(&"a ".repeat(100_000)) <= 2200);
        assert!(score(&format!("a {}", "b ".repeat(100_000))) > 0);
    }
}
