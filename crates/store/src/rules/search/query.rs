//! Parses the text of a query into phrases, and gives the conditions that an index can check.
//!
//! White space separates phrases; a text must contain all of them or any, as the request says.
//! Within a phrase, and within double quotes, the terms must be adjacent. A `*` at the end of a
//! phrase or after a closing quote makes the last word a prefix. There is no other syntax and so no
//! syntax error.
//!
//! Not here: matching ([`match_text`](super::match_text)).

use std::collections::BTreeSet;

use contexture_text::search_terms::{Purpose, TermShape, visit_terms};

/// Largest number of conditions for an index; the rest of a long query is checked on the
/// candidates.
const INDEX_CONDITIONS: usize = 64;

/// Smallest length of a prefix that an index is asked for, in characters. The texts of a shorter one are a good part
/// of all texts, and an index would collect them before it gives the first.
const INDEX_PREFIX_CHARS: usize = 3;

/// Largest number of prefixes that an index is asked for in one list of conditions, the longest ones.
const INDEX_PREFIXES: usize = 2;

/// A parsed query: phrases of one or more terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub(super) pieces: Vec<QueryPhrase>,
}

/// A phrase of a query: terms that must be adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QueryPhrase {
    /// Terms of the phrase; never empty, and the first has the offset 0.
    pub(super) terms: Vec<QueryTerm>,
}

/// A term of a phrase, with its offset from the first term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryTerm {
    pub(super) offset: u32,
    pub(super) text: String,
    pub(super) extent: TermExtent,
}

/// How much of a term in the text the wanted term covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TermExtent {
    /// All of the term.
    Whole,
    /// The beginning of the term; a snippet marks the whole word.
    Beginning,
    /// The first character of the term, in a script without spaces.
    FirstCharacter,
}

/// Condition that an index can check: a term that a text must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexCondition<'a> {
    /// The wanted term, or the beginning of it.
    pub term: &'a str,
    /// Whether any term that begins with `term` satisfies the condition.
    pub prefix: bool,
}

impl Query {
    /// Parses a query; every text is a valid one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut rest = text;
        // Every text is a valid query: an open quote ends with the text.
        while let Some((piece, prefix, after)) = next_phrase(rest) {
            query.add_phrase(piece, prefix);
            rest = after;
        }
        query
    }

    /// Returns whether there is nothing to search for: no text, or punctuation only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns necessary conditions for a match. They are not sufficient: adjacency is not part of
    /// them, nor are prefixes that are too short or too many for an index. None of them means that
    /// any text may match.
    #[must_use]
    pub fn index_conditions(&self) -> Vec<IndexCondition<'_>> {
        collect_conditions(&self.pieces)
    }

    /// Returns the same for each phrase separately.
    #[must_use]
    pub(crate) fn phrase_conditions(&self) -> Vec<Vec<IndexCondition<'_>>> {
        let pieces = self.pieces.iter();
        pieces.map(|piece| collect_conditions([piece])).collect()
    }

    fn add_phrase(&mut self, text: &str, prefix: bool) {
        let mut piece = QueryPhrase::default();
        let mut first = None;
        let mut last = TermShape::Word;
        visit_terms(text, Purpose::Query, |term| {
            // Offsets are relative to the first term, since a phrase may begin anywhere in a text.
            let first = *first.get_or_insert(term.position);
            last = term.shape;
            piece.terms.push(QueryTerm {
                offset: term.position - first,
                text: term.text.to_owned(),
                extent: match term.shape {
                    TermShape::Character => TermExtent::FirstCharacter,
                    TermShape::Word | TermShape::Pair | TermShape::Symbol => TermExtent::Whole,
                },
            });
        });
        // Only a word can be a prefix: the prefix of a pair of characters is no term.
        if let Some(wanted) = piece.terms.last_mut()
            && prefix
            && last == TermShape::Word
        {
            wanted.extent = TermExtent::Beginning;
        }
        // A repeated phrase would count twice in the score.
        if !piece.terms.is_empty() && !self.pieces.contains(&piece) {
            self.pieces.push(piece);
        }
    }
}

fn collect_conditions<'a>(
    pieces: impl IntoIterator<Item = &'a QueryPhrase>,
) -> Vec<IndexCondition<'a>> {
    let wanted = pieces.into_iter().flat_map(|piece| &piece.terms);
    // The first character of a pair is a term of its script as a word is of another, and as rare.
    let is_too_short = |wanted: &&QueryTerm| {
        wanted.extent == TermExtent::Beginning
            && wanted.text.chars().nth(INDEX_PREFIX_CHARS - 1).is_none()
    };
    let all: BTreeSet<IndexCondition<'_>> = wanted
        .filter(|wanted| !is_too_short(wanted))
        .map(|wanted| IndexCondition {
            term: &wanted.text,
            prefix: wanted.extent != TermExtent::Whole,
        })
        .collect();
    let (mut prefixes, mut conditions): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|condition| condition.prefix);
    prefixes.sort_by_key(|condition| std::cmp::Reverse(condition.term.chars().count()));
    // Leaving conditions out only proposes more; each candidate is matched against the whole query.
    conditions.truncate(INDEX_CONDITIONS - INDEX_PREFIXES);
    conditions.extend(prefixes.into_iter().take(INDEX_PREFIXES));
    conditions
}

/// Returns the next phrase, whether its last word is a prefix, and the rest of the text.
fn next_phrase(text: &str) -> Option<(&str, bool, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    if is_quote(first) {
        let inside = text.get(first.len_utf8()..).unwrap_or_default();
        let (piece, after) = split_or_end(inside, inside.find(is_quote));
        let after = after.strip_prefix(is_quote).unwrap_or(after);
        return Some(match after.strip_prefix('*') {
            Some(after) => (piece, true, after),
            None => (piece, false, after),
        });
    }
    let end = text.find(|c: char| c.is_whitespace() || is_quote(c));
    let (piece, after) = split_or_end(text, end);
    Some((piece, piece.ends_with('*'), after))
}

fn split_or_end(text: &str, at: Option<usize>) -> (&str, &str) {
    text.split_at(at.unwrap_or(text.len()))
}

/// Straight or typographic, since phone keyboards insert the latter.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201C}' | '\u{201D}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces in brackets, beginnings with `*`, first characters with `^`.
    fn shown(text: &str) -> String {
        let show = |wanted: &QueryTerm| {
            let mark = match wanted.extent {
                TermExtent::Whole => "",
                TermExtent::Beginning => "*",
                TermExtent::FirstCharacter => "^",
            };
            format!("{}{}{mark}", wanted.offset, wanted.text)
        };
        let piece = |piece: &QueryPhrase| {
            let terms: Vec<String> = piece.terms.iter().map(show).collect();
            format!("[{}]", terms.join(" "))
        };
        Query::parse(text).pieces.iter().map(piece).collect()
    }

    #[test]
    fn any_text_is_a_query() {
        for (text, expected) in [
            ("", ""),
            (" \n", ""),
            ("\"", ""),
            ("* ( && \"\" -", ""),
            ("foo bar foo", "[0foo][0bar]"),
            ("foo-bar", "[0foo 1bar]"),
            ("\"Foo bar\" baz", "[0foo 1bar][0baz]"),
            ("“foo bar” baz", "[0foo 1bar][0baz]"),
            ("say\"foo bar", "[0say][0foo 1bar]"),
            ("fo* \"foo ba\"*", "[0fo*][0foo 1ba*]"),
            ("\"foo*\" *", "[0foo]"),
            ("a AND b OR NOT c", "[0a][0and][0b][0or][0not][0c]"),
            ("col:x NEAR(a, 2)", "[0col 1x][0near 1a][02]"),
            ("c++ C#", "[0c++][0c#]"),
            ("東 東京* 京都大学", "[0東^][0東京][0京都 1都大 2大学]"),
            ("v1東b", "[0v1 1東^ 2b]"),
            ("👍*", "[0👍]"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn an_index_is_asked_for_each_term_once() {
        let check = |text: &str, expected: &[(&str, bool)]| {
            let query = Query::parse(text);
            let asked = query.index_conditions().into_iter();
            let asked: Vec<_> = asked.map(|one| (one.term, one.prefix)).collect();
            assert_eq!(asked, expected, "{text}");
        };
        check(
            "b a-b abc* 東",
            &[("a", false), ("b", false), ("abc", true), ("東", true)],
        );
        let alone = Query::parse("b-a abc*");
        let alone: Vec<usize> = alone.phrase_conditions().iter().map(Vec::len).collect();
        assert_eq!(alone, [2, 1]);
        let long: String = (0..1000).map(|n| format!("w{n} ")).collect();
        assert_eq!(
            Query::parse(&long).index_conditions().len(),
            INDEX_CONDITIONS - INDEX_PREFIXES
        );
    }

    /// What an index is asked for has a bounded cost: no short prefixes, and few long ones.
    #[test]
    fn an_index_is_asked_for_few_prefixes() {
        for (text, expected) in [
            ("a* b* c* d* e* f* g* h*", &[][..]),
            ("ab* c", &["c"]),
            ("über* äöü* äö*", &["uber*", "aou*"]),
            ("abc* abcd* abcde* x", &["x", "abcde*", "abcd*"]),
            ("東 京 都", &["京*", "東*"]),
        ] {
            let query = Query::parse(text);
            let asked = query.index_conditions().into_iter();
            let asked =
                asked.map(|one| format!("{}{}", one.term, if one.prefix { "*" } else { "" }));
            assert_eq!(asked.collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
