//! Parses the text of a query into phrases, and gives the conditions that an index can check.
//!
//! White space separates phrases. Within double quotes the terms must be adjacent, and a `*` at the
//! end of a phrase or after a closing quote makes the last word a prefix. There is no other syntax
//! and so no syntax error.
//!
//! A query is parsed in one of two ways. [`Query::parse`] is for texts that must have everything:
//! each piece is a phrase of literal terms. [`Query::parse_question`] is for texts that answer a
//! question: words are looked for by their stems, function words are left out, and what is in
//! quotes is required.
//!
//! Not here: matching ([`match_text`](super::match_text)).

use std::borrow::Cow;
use std::collections::BTreeSet;

use contexture_text::search_terms::{
    Purpose, Term, TermShape, WordStem, content_of, is_function_word, literal_index_term,
    stems_within, visit_terms,
};

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
    /// Whether a text without this phrase is no hit, whatever else it has.
    pub(super) required: bool,
}

/// A term of a phrase, with its offset from the first term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryTerm {
    pub(super) offset: u32,
    /// The wanted term, the beginning of it, or its stem.
    pub(super) text: String,
    pub(super) extent: TermExtent,
    /// What an index is asked for.
    index_term: String,
    /// The words that have the stem, with [`TermExtent::Stem`] only.
    pub(super) stem: Option<WordStem>,
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
    /// The stem of the term.
    Stem,
}

/// Condition that an index can check: a term that it must have of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexCondition<'a> {
    /// The wanted term, or the beginning of it.
    pub term: &'a str,
    /// Which terms satisfy the condition.
    pub extent: ConditionExtent,
}

impl<'a> IndexCondition<'a> {
    /// Returns the other terms that satisfy a [`ConditionExtent::Prefix`], at most seven: stems that
    /// stand for longer words.
    pub fn other_terms(&self) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        let within = (self.extent == ConditionExtent::Prefix).then(|| stems_within(self.term));
        within.into_iter().flatten()
    }

    /// Whether this term of an index satisfies the condition.
    pub(super) fn is_met_by(&self, term: &str) -> bool {
        match self.extent {
            ConditionExtent::Whole => term == self.term,
            ConditionExtent::Prefix => {
                term.starts_with(self.term) || self.other_terms().any(|other| other == term)
            }
        }
    }
}

/// Which terms of an index satisfy a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionExtent {
    /// The term itself.
    Whole,
    /// Any term that begins with it, and [`IndexCondition::other_terms`].
    Prefix,
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

    /// Parses a question, of which at most `most` phrases are used, the first ones; every text is a
    /// valid one.
    ///
    /// * What is in double quotes is required, and literal. A star makes a literal beginning. A quote without its partner,
    ///   or right behind a word as in `12" pizza`, is punctuation.
    /// * Other words are looked for by their stems, except for function words, unless there are no
    ///   others. Of `Anna's` the word is `Anna`.
    /// * A piece of several words, such as `src/main.rs`, is looked for as a phrase and as its words.
    /// * A run of a script without spaces is looked for by its pairs of characters.
    #[must_use]
    pub fn parse_question(text: &str, most: usize) -> Self {
        let mut query = Self::default();
        let mut function_words = Self::default();
        let mut rest = skip_lone_quote(text);
        while let Some((piece, prefix, after)) = next_phrase(rest) {
            let is_quoted = rest.trim_start().starts_with(is_quote);
            if is_quoted || prefix {
                query.add_literal_phrase(piece, prefix, is_quoted);
            } else {
                query.add_words(content_of(piece), &mut function_words);
            }
            // Of `12" pizza` the sign means inches, and what follows is no phrase.
            let is_mark = !is_quoted && piece.ends_with(char::is_alphanumeric);
            let after = match is_mark {
                true => after.strip_prefix(is_quote).unwrap_or(after),
                false => after,
            };
            rest = skip_lone_quote(after);
        }
        if query.is_empty() {
            query = function_words;
        }
        query.pieces.truncate(most);
        query
    }

    /// Returns whether there is nothing to search for: no text, or punctuation only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns necessary conditions for a match. They are not sufficient: adjacency is not part of
    /// them, nor is which form of a word a text has, nor are prefixes that are too short or too many for an index. None of them means that
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
        self.add_literal_phrase(text, prefix, false);
    }

    fn add_literal_phrase(&mut self, text: &str, prefix: bool, required: bool) {
        let mut piece = QueryPhrase {
            terms: Vec::new(),
            required,
        };
        let mut first = None;
        let mut last = TermShape::Word;
        visit_terms(text, Purpose::Query, |term| {
            // Offsets are relative to the first term, since a phrase may begin anywhere in a text.
            let first = *first.get_or_insert(term.position);
            last = term.shape;
            let offset = term.position - first;
            piece.terms.push(QueryTerm::literal(&term, offset));
        });
        // Only a word can be a prefix: the prefix of a pair of characters is no term.
        if let Some(wanted) = piece.terms.last_mut()
            && prefix
            && last == TermShape::Word
        {
            wanted.extent = TermExtent::Beginning;
            wanted.index_term.clone_from(&wanted.text);
        }
        self.push_new(piece);
    }

    /// Adds the words of a piece of a question, and their phrase if they are several.
    fn add_words(&mut self, text: &str, function_words: &mut Self) {
        let mut words: Vec<QueryTerm> = Vec::new();
        let mut are_words = true;
        visit_terms(text, Purpose::Query, |term| {
            are_words &= term.shape == TermShape::Word;
            let alone = QueryTerm::by_stem(&term);
            let target = match is_function_word(term.text) {
                true => &mut *function_words,
                false => &mut *self,
            };
            target.push_new(QueryPhrase::of_term(alone));
            words.push(QueryTerm::literal(&term, term.position));
        });
        // The pairs of a sentence without spaces are no phrase: no answer repeats the question.
        if are_words && words.len() > 1 {
            self.push_new(QueryPhrase {
                terms: words,
                required: false,
            });
        }
    }

    fn push_new(&mut self, piece: QueryPhrase) {
        // A repeated phrase would count twice in the score.
        if !piece.terms.is_empty() && !self.pieces.contains(&piece) {
            self.pieces.push(piece);
        }
    }

    /// Whether some phrase must be in every hit.
    pub(super) fn has_required(&self) -> bool {
        self.pieces.iter().any(|piece| piece.required)
    }

    /// Returns necessary conditions of the required phrases.
    pub(super) fn required_conditions(&self) -> Vec<IndexCondition<'_>> {
        collect_conditions(self.pieces.iter().filter(|piece| piece.required))
    }

    pub(super) fn phrase_count(&self) -> usize {
        self.pieces.len()
    }
}

impl QueryPhrase {
    fn of_term(term: QueryTerm) -> Self {
        Self {
            terms: vec![term],
            required: false,
        }
    }
}

impl QueryTerm {
    fn literal(term: &Term<'_>, offset: u32) -> Self {
        Self {
            offset,
            text: term.text.to_owned(),
            index_term: literal_index_term(term.text).into_owned(),
            extent: match term.shape {
                TermShape::Character => TermExtent::FirstCharacter,
                TermShape::Word | TermShape::Pair | TermShape::Symbol => TermExtent::Whole,
            },
            stem: None,
        }
    }

    /// Returns a term alone, looked for by its stem if it has one.
    fn by_stem(term: &Term<'_>) -> Self {
        let literal = Self::literal(term, 0);
        let is_word = term.shape == TermShape::Word;
        match is_word.then(|| WordStem::of(term.text)).flatten() {
            Some(stem) => Self {
                text: stem.as_str().to_owned(),
                index_term: stem.as_str().to_owned(),
                extent: TermExtent::Stem,
                stem: Some(stem),
                ..literal
            },
            None => literal,
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
            term: &wanted.index_term,
            extent: match wanted.extent {
                TermExtent::Whole | TermExtent::Stem => ConditionExtent::Whole,
                TermExtent::Beginning | TermExtent::FirstCharacter => ConditionExtent::Prefix,
            },
        })
        .collect();
    let (mut prefixes, mut conditions): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|condition| condition.extent == ConditionExtent::Prefix);
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

/// Returns what follows quotes at the beginning of a text that nothing closes.
fn skip_lone_quote(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(inside) = rest.strip_prefix(is_quote) {
        if inside.contains(is_quote) {
            break;
        }
        rest = inside.trim_start();
    }
    rest
}

fn split_or_end(text: &str, at: Option<usize>) -> (&str, &str) {
    text.split_at(at.unwrap_or(text.len()))
}

/// Straight or typographic, since phone keyboards insert the latter.
pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201C}' | '\u{201D}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces in brackets, beginnings with `*`, first characters with `^`.
    fn shown(query: &Query) -> String {
        let show = |wanted: &QueryTerm| {
            let mark = match wanted.extent {
                TermExtent::Whole => "",
                TermExtent::Beginning => "*",
                TermExtent::FirstCharacter => "^",
                TermExtent::Stem => "~",
            };
            format!("{}{}{mark}", wanted.offset, wanted.text)
        };
        let piece = |piece: &QueryPhrase| {
            let terms: Vec<String> = piece.terms.iter().map(show).collect();
            let mark = if piece.required { "!" } else { "" };
            format!("[{}]{mark}", terms.join(" "))
        };
        query.pieces.iter().map(piece).collect()
    }

    #[test]
    fn a_question_is_its_content_words() {
        for (text, expected) in [
            ("", ""),
            (
                "When does the staging password rotate?",
                "[0stage~][0password~][0rotat~]",
            ),
            ("What did Anna's dogs eat", "[0anna~][0dog~][0eat~]"),
            ("who is it", "[0who~][0is~][0it~]"),
            ("gloves OR hats", "[0glove~][0hat~]"),
            ("src/main.rs", "[0src~][0main~][0rs~][0src 1main 2rs]"),
            ("\"went home\" gl* 42", "[0went 1home]![0gl*][042]"),
            ("東京都の天気", "[0東京][0京都][0都の][0の天][0天気]"),
            ("c++ 👍", "[0c++][0👍]"),
            // Quotes that enclose nothing.
            ("did the 12\" pizza arrive", "[012][0pizza~][0arriv~]"),
            ("a 12\" and a 14\" pizza", "[012][014][0pizza~]"),
            ("open \"quoted words", "[0open~][0quot~][0word~]"),
            ("\" \"", ""),
        ] {
            assert_eq!(shown(&Query::parse_question(text, 32)), expected, "{text}");
        }
        let long: String = (0..100).map(|n| format!("w{n} ")).collect();
        assert_eq!(Query::parse_question(&long, 32).pieces.len(), 32);
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
            assert_eq!(shown(&Query::parse(text)), expected, "{text}");
        }
    }

    #[test]
    fn an_index_is_asked_for_each_term_once() {
        let check = |text: &str, expected: &[(&str, bool)]| {
            let query = Query::parse(text);
            let asked = query.index_conditions().into_iter();
            let asked: Vec<_> = asked
                .map(|one| (one.term, one.extent == ConditionExtent::Prefix))
                .collect();
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
            let asked = asked.map(|one| match one.extent {
                ConditionExtent::Prefix => format!("{}*", one.term),
                ConditionExtent::Whole => one.term.to_owned(),
            });
            assert_eq!(asked.collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
