//! Matches a text against a query: whether it matches, with what score, and where.
//!
//! The score depends on the query and the text alone: it grows with the number and the density of a
//! phrase's occurrences, with diminishing returns. Whole-number arithmetic makes every backend and
//! machine rank alike. With [`MatchMode::Any`](crate::MatchMode::Any), each phrase also has a
//! weight.
//!
//! Not here: selecting candidates, and the weights.

use std::ops::Range;

use super::idf::{IdfWeight, ONE};
use super::query::{IndexCondition, Query, QueryPhrase, QueryTerm, TermExtent};
use contexture_text::search_terms::{Purpose, Term, index_terms_of, visit_terms};

/// Match of a query in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMatch {
    /// Score of the text; higher is better. Comparable within one query only.
    pub score: u32,
    /// Byte ranges of the text in which phrases occur, in order, not overlapping.
    pub places: Vec<Range<usize>>,
}

/// Occurrence of a wanted term in a text.
#[derive(Clone, Copy)]
struct MatchRange {
    position: u32,
    start: usize,
    end: usize,
}

/// Matches all phrases of a query; returns `None` if one is missing.
#[must_use]
pub fn match_all(query: &Query, text: &str) -> Option<TextMatch> {
    if query.is_empty() {
        return None;
    }
    let seen = find_phrases(query, text);
    let has_all = seen.pieces.iter().all(|places| !places.is_empty());
    has_all.then(|| seen.into_text_match(|_| ONE))
}

/// Matches any phrase of a query, with the given weights; returns `None` if the text has no phrase
/// that selects nodes, or lacks a required one.
pub(super) fn match_any(query: &Query, weights: &[IdfWeight], text: &str) -> Option<TextMatch> {
    let seen = find_phrases(query, text);
    let mut both = seen.pieces.iter().zip(weights);
    let has_any = query.has_required()
        || both.any(|(places, weight)| weight.selects_nodes && !places.is_empty());
    let mut each = seen.pieces.iter().zip(&query.pieces);
    let has_required = each.all(|(places, piece)| !piece.required || !places.is_empty());
    (has_any && has_required)
        .then(|| seen.into_text_match(|piece| weights.get(piece).map_or(0, |one| one.factor)))
}

/// Whether a text has any phrase of a query.
pub(super) fn has_any_phrase(query: &Query, text: &str) -> bool {
    // Most requests exclude nothing.
    if query.is_empty() {
        return false;
    }
    let seen = find_phrases(query, text);
    seen.pieces.iter().any(|places| !places.is_empty())
}

/// Returns for which phrases an index would propose a text: those all of whose terms it has,
/// adjacent or not.
#[must_use]
pub(crate) fn phrases_with_all_terms(query: &Query, text: &str) -> Vec<bool> {
    let mut missing: Vec<Vec<IndexCondition<'_>>> = query.phrase_conditions();
    visit_terms(text, Purpose::Index, |term| {
        for term in index_terms_of(term.text) {
            for conditions in &mut missing {
                conditions.retain(|wanted| !wanted.is_met_by(&term));
            }
        }
    });
    missing.iter().map(Vec::is_empty).collect()
}

/// Occurrences of a query's phrases in a text.
struct QueryMatches {
    /// Byte ranges of each phrase, in the order of the query.
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
    // Most words begin with other letters than the wanted ones, and this loop sees all words of a thousand texts.
    let mut may_match = [false; 256];
    wanted
        .iter()
        .for_each(|term| term.mark_first_bytes(&mut may_match));
    visit_terms(text, Purpose::Index, |term| {
        length += 1;
        let first = term.text.bytes().next().unwrap_or_default();
        if may_match.get(usize::from(first)) != Some(&true) {
            return;
        }
        for (wanted, occurrences) in wanted.iter().zip(&mut occurrences) {
            let Some(end) = wanted.end_in(&term) else {
                continue;
            };
            match occurrences.last_mut() {
                // One word can yield several terms at one position, such as `c` and `c++`.
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

/// Computes BM25 with k = 1.2, b = 0.75 and an average length of 100 terms, times 1,000; at most
/// 2,200.
fn bm25_score(times: u64, length: u64) -> u32 {
    let times = times.saturating_mul(1000);
    let norm = 300 + length.saturating_mul(9);
    let score = times.saturating_mul(2200) / times.saturating_add(norm);
    u32::try_from(score).unwrap_or(u32::MAX)
}

impl QueryTerm {
    /// Marks the bytes with which the terms begin that may match.
    fn mark_first_bytes(&self, may_match: &mut [bool; 256]) {
        let mut mark = |text: &str| match text.bytes().next() {
            Some(first) => {
                if let Some(mark) = may_match.get_mut(usize::from(first)) {
                    *mark = true;
                }
            }
            None => may_match.fill(true),
        };
        match (&self.extent, &self.stem) {
            (TermExtent::Stem, Some(stem)) => stem.beginnings().for_each(mark),
            _ => mark(&self.text),
        }
    }

    /// Returns where the match ends, if the wanted term matches this term.
    fn end_in(&self, term: &Term<'_>) -> Option<usize> {
        match self.extent {
            TermExtent::Whole => (term.text == self.text).then_some(term.end),
            TermExtent::Beginning => term.text.starts_with(&self.text).then_some(term.end),
            TermExtent::FirstCharacter => {
                term.text.starts_with(&self.text).then_some(term.first_end)
            }
            TermExtent::Stem => {
                let stem = self.stem.as_ref();
                let is_form = stem.is_some_and(|stem| stem.matches(term.text));
                is_form.then_some(term.end)
            }
        }
    }
}

impl QueryPhrase {
    /// Returns where the terms are adjacent; `occurrences` are those of each term, by position.
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

/// Sorts ranges and merges overlapping ones.
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
