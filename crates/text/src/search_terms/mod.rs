//! Splits text into the terms by which it is found.
//!
//! A pure rule, so that every backend finds the same; its results may change only together with [`TERMS_VERSION`],
//! because indexes are built from them.
//!
//! * A word is a run of letters and digits. `main.rs` is two words, and so is `user_id`: a search for either half finds
//!   them, and both halves together are found as a phrase.
//! * `++` or `#` after a word makes one more term at the same position: `c++`, `c#`.
//! * Scripts without spaces are split into overlapping pairs of characters, and an index also gets the last character
//!   of a run alone, so that each character starts a term.
//! * Emoji and signs are terms by themselves; other punctuation separates.
//! * A term is cut after [`TERM_BYTES`], not counting a suffix `++` or `#`.
//! * An index has the stem of each word, and the word too where the stem would not find it by its beginnings
//!   ([`index_terms_of`]). Whether a text has the word itself is decided by the text.
//!
//! Not here: which text of an item is searched, and how a query is parsed.

mod fold;
mod question_words;
mod stem;

use std::borrow::Cow;

use fold::{FoldedClass, fold_char};
pub use question_words::{content_of, is_function_word};
pub use stem::{WordStem, index_terms_of, literal_index_term, stem_word, stems_within};
use unicode_normalization::char::compose;

/// The version of the rule. An index built with another version has to be rebuilt.
pub const TERMS_VERSION: u32 = 3;

/// Maximum length of a term in bytes.
pub const TERM_BYTES: usize = 64;

/// Maximum length of a character with its marks, in bytes.
const UNIT_BYTES: usize = 24;

/// A term with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// The folded term: no white space, no punctuation but `+` and `#`.
    pub text: &'a str,
    /// Position of the term, from 0. Terms at adjacent positions form phrases.
    pub position: u32,
    /// Start of the term in the text, in bytes.
    pub start: usize,
    /// End of its first character, in bytes.
    pub first_end: usize,
    /// End of the term, in bytes.
    pub end: usize,
    /// Kind of the term.
    pub shape: TermShape,
}

/// Kind of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermShape {
    /// A whole word.
    Word,
    /// Two characters of a script without spaces.
    Pair,
    /// One character of a script without spaces.
    Character,
    /// A sign or an emoji.
    Symbol,
}

/// Purpose of the terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For an index: every term by which the text may be searched.
    Index,
    /// For a query: one term per position, only those that must match.
    Query,
}

/// Calls `visit` with the terms of `text`, in order.
pub fn visit_terms(text: &str, purpose: Purpose, mut visit: impl FnMut(Term<'_>)) {
    let mut cutter = TermSplitter {
        purpose,
        visit: &mut visit,
        position: 0,
        state: SplitterState::Between,
        word: String::new(),
        pair: String::new(),
    };
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(c) = rest.chars().next()
    {
        let end = at + c.len_utf8();
        if c.is_ascii_alphanumeric() {
            let more = rest.bytes().position(|b| !b.is_ascii_alphanumeric());
            let run = rest.get(..more.unwrap_or(rest.len())).unwrap_or(rest);
            cutter.push_ascii_run(run, at);
            at += run.len();
        } else if let Some(suffix) = cutter.take_suffix(rest, at) {
            at += suffix;
        } else {
            fold_char(c, &mut |folded, class| {
                cutter.push_char(folded, class, at, end)
            });
            at = end;
        }
    }
    cutter.finish_term();
}

/// Returns the distinct terms of `text` for an index, with stems for words, sorted and separated by spaces.
#[must_use]
pub fn index_terms(text: &str) -> String {
    let mut all = String::new();
    let mut places = Vec::new();
    visit_terms(text, Purpose::Index, |term| {
        let start = all.len();
        all.push_str(term.text);
        places.push(start..all.len());
    });
    let each = places.into_iter();
    let mut distinct: Vec<&str> = each.filter_map(|at| all.get(at)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    // After the words are distinct: stemming costs more than cutting.
    let mut terms: Vec<Cow<'_, str>> = distinct.into_iter().flat_map(index_terms_of).collect();
    terms.sort_unstable();
    terms.dedup();
    terms.join(" ")
}

struct TermSplitter<'a, F> {
    purpose: Purpose,
    visit: &'a mut F,
    position: u32,
    state: SplitterState,
    /// The word so far.
    word: String,
    /// The previous unit, followed by the current one.
    pair: String,
}

#[derive(Clone, Copy)]
enum SplitterState {
    Between,
    Word {
        start: usize,
        end: usize,
        first_end: usize,
    },
    Symbol {
        c: char,
        start: usize,
        end: usize,
    },
    /// In a run of a script without spaces.
    Run {
        /// The unit before the current one, if there is one.
        before: Option<Unit>,
        now: Unit,
    },
}

/// A character with its marks: its range in the text, and its start in `pair`.
#[derive(Clone, Copy)]
struct Unit {
    start: usize,
    end: usize,
    from: usize,
}

impl<F: FnMut(Term<'_>)> TermSplitter<'_, F> {
    fn push_char(&mut self, c: char, class: FoldedClass, start: usize, end: usize) {
        match class {
            FoldedClass::Word => self.push_letter(c, start, end),
            FoldedClass::Unit => self.push_unit(c, start, end),
            FoldedClass::Mark => self.push_mark(c, end),
            FoldedClass::Nothing => self.extend_end(end),
            FoldedClass::Symbol => {
                self.finish_term();
                self.state = SplitterState::Symbol { c, start, end };
            }
            FoldedClass::Break => self.finish_term(),
        }
    }

    /// Adds a run of ASCII letters and digits.
    fn push_ascii_run(&mut self, run: &str, start: usize) {
        self.extend_word(start, start + 1, start + run.len());
        let from = self.word.len();
        let room = TERM_BYTES.saturating_sub(from).min(run.len());
        self.word.push_str(run.get(..room).unwrap_or_default());
        if let Some(new) = self.word.get_mut(from..) {
            new.make_ascii_lowercase();
        }
    }

    fn push_letter(&mut self, c: char, start: usize, end: usize) {
        self.extend_word(start, end, end);
        if self.word.len() + c.len_utf8() <= TERM_BYTES {
            self.word.push(c);
        }
    }

    fn extend_word(&mut self, start: usize, first_end: usize, end: usize) {
        match &mut self.state {
            SplitterState::Word { end: so_far, .. } => *so_far = end,
            _ => {
                self.finish_term();
                self.word.clear();
                self.state = SplitterState::Word {
                    start,
                    end,
                    first_end,
                };
            }
        }
    }

    fn push_mark(&mut self, c: char, end: usize) {
        match self.state {
            SplitterState::Between | SplitterState::Symbol { .. } => {}
            SplitterState::Word { .. } => {
                if self.word.len() + c.len_utf8() <= TERM_BYTES {
                    self.word.push(c);
                }
            }
            SplitterState::Run { now, .. } => {
                if !self.compose_with_last(c)
                    && self.pair.len() - now.from + c.len_utf8() <= UNIT_BYTES
                {
                    self.pair.push(c);
                }
            }
        }
        self.extend_end(end);
    }

    /// Composes a character with the last of the unit, if a composed form exists: Hangul syllables, voiced kana.
    fn compose_with_last(&mut self, c: char) -> bool {
        let last = self.pair.chars().next_back();
        let Some(joined) = last.and_then(|last| compose(last, c)) else {
            return false;
        };
        self.pair.pop();
        self.pair.push(joined);
        true
    }

    /// Extends the current term over a character that was folded away.
    fn extend_end(&mut self, to: usize) {
        match &mut self.state {
            SplitterState::Between => {}
            SplitterState::Word { end, .. } | SplitterState::Symbol { end, .. } => *end = to,
            SplitterState::Run { now, .. } => now.end = to,
        }
    }

    fn push_unit(&mut self, c: char, start: usize, end: usize) {
        match self.state {
            SplitterState::Run { before, now } => {
                if self.compose_with_last(c) {
                    return self.extend_end(end);
                }
                if let Some(before) = before {
                    self.emit_pair(before, now);
                    self.pair.drain(..now.from);
                }
                let before = Unit { from: 0, ..now };
                let now = Unit {
                    start,
                    end,
                    from: self.pair.len(),
                };
                self.state = SplitterState::Run {
                    before: Some(before),
                    now,
                };
            }
            _ => {
                self.finish_term();
                self.pair.clear();
                let now = Unit {
                    start,
                    end,
                    from: 0,
                };
                self.state = SplitterState::Run { before: None, now };
            }
        }
        self.pair.push(c);
    }

    fn emit_pair(&mut self, before: Unit, now: Unit) {
        let pair = std::mem::take(&mut self.pair);
        self.emit_term(&pair, TermShape::Pair, before.start, before.end, now.end);
        self.pair = pair;
        self.position += 1;
    }

    /// Ends the current term.
    fn finish_term(&mut self) {
        match std::mem::replace(&mut self.state, SplitterState::Between) {
            SplitterState::Between => {}
            SplitterState::Symbol { c, start, end } => {
                let mut buffer = [0; 4];
                self.emit_term(
                    c.encode_utf8(&mut buffer),
                    TermShape::Symbol,
                    start,
                    end,
                    end,
                );
                self.position += 1;
            }
            SplitterState::Word {
                start,
                end,
                first_end,
            } => {
                let word = std::mem::take(&mut self.word);
                self.emit_term(&word, TermShape::Word, start, first_end, end);
                self.word = word;
                self.position += 1;
            }
            SplitterState::Run { before, now } => {
                if let Some(before) = before {
                    self.emit_pair(before, now);
                }
                if before.is_none() || self.purpose == Purpose::Index {
                    let pair = std::mem::take(&mut self.pair);
                    let last = pair.get(now.from..).unwrap_or_default();
                    self.emit_term(last, TermShape::Character, now.start, now.end, now.end);
                    self.pair = pair;
                }
                self.position += 1;
            }
        }
    }

    /// Ends the word with a suffix `++` or `#` at the start of `rest`; returns the length of the suffix.
    fn take_suffix(&mut self, rest: &str, at: usize) -> Option<usize> {
        let suffix = match rest.as_bytes() {
            [b'#', ..] => "#",
            [b'+', b'+', ..] => "++",
            _ => return None,
        };
        let SplitterState::Word {
            start,
            end,
            first_end,
        } = self.state
        else {
            return None;
        };
        if end != at {
            return None;
        }
        if self.purpose == Purpose::Index {
            let word = std::mem::take(&mut self.word);
            self.emit_term(&word, TermShape::Word, start, first_end, end);
            self.word = word;
        }
        self.word.push_str(suffix);
        self.state = SplitterState::Word {
            start,
            end: at + suffix.len(),
            first_end,
        };
        self.finish_term();
        Some(suffix.len())
    }

    fn emit_term(
        &mut self,
        text: &str,
        shape: TermShape,
        start: usize,
        first_end: usize,
        end: usize,
    ) {
        (self.visit)(Term {
            text,
            position: self.position,
            start,
            first_end,
            end,
            shape,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, purpose: Purpose) -> String {
        let mut out = Vec::new();
        visit_terms(text, purpose, |term| {
            assert!(text.is_char_boundary(term.start) && text.is_char_boundary(term.end));
            assert!(term.start < term.first_end && term.first_end <= term.end);
            out.push(format!("{}{}", term.position, term.text));
        });
        out.join(" ")
    }

    #[test]
    fn texts_are_cut() {
        for (text, index, query) in [
            ("", "", ""),
            ("Don't panic!", "0don 1t 2panic", "0don 1t 2panic"),
            ("src/main.rs", "0src 1main 2rs", "0src 1main 2rs"),
            ("C++ and C#.", "0c 0c++ 1and 2c 2c#", "0c++ 1and 2c#"),
            ("a+b # x", "0a 1b 2x", "0a 1b 2x"),
            ("東", "0東", "0東"),
            ("東京", "0東京 1京", "0東京"),
            ("東京都。", "0東京 1京都 2都", "0東京 1京都"),
            ("GPT4は便利", "0gpt4 1は便 2便利 3利", "0gpt4 1は便 2便利"),
            ("한국어", "0한국 1국어 2어", "0한국 1국어"),
            ("ガギ", "0ガギ 1ギ", "0ガギ"),
            ("ｶﾞｷﾞ", "0ガギ 1ギ", "0ガギ"),
            ("👍🏽 ok", "0👍 1ok", "0👍 1ok"),
            ("┌──┐ ░▒", "", ""),
            ("\u{301}x\u{301}\u{301}", "0x", "0x"),
        ] {
            assert_eq!(cut(text, Purpose::Index), index, "{text}");
            assert_eq!(cut(text, Purpose::Query), query, "{text}");
        }
        // The same syllables, composed and not.
        let apart = "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}";
        assert_eq!(cut(apart, Purpose::Index), cut("한국", Purpose::Index));
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "Ein Süßes! e\u{301}";
        let mut places = Vec::new();
        visit_terms(text, Purpose::Index, |term| {
            places.push(&text[term.start..term.end]);
        });
        assert_eq!(places, ["Ein", "Süßes", "e\u{301}"]);
    }

    #[test]
    fn long_terms_are_cut_alike() {
        let long = "x".repeat(10_000);
        assert_eq!(index_terms(&long), "x".repeat(TERM_BYTES));
        let flood = format!("か{}", "\u{3099}\u{20dd}".repeat(10_000));
        assert!(index_terms(&flood).len() <= UNIT_BYTES);
        assert_eq!(index_terms("b a b"), "a b");
    }

    #[test]
    fn stems_stand_for_words() {
        for (text, expected) in [
            ("The gloves glove", "glove the"),
            ("went to c++ v2", "c c++ go to v2 went"),
            ("東京 tests", "test 京 東京"),
        ] {
            assert_eq!(index_terms(text), expected, "{text}");
        }
    }
}
