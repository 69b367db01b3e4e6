//! The patterns of one section of a language's file, compiled.
//!
//! Not here: how a line of the file becomes a pattern (`language`).

use regex::bytes::{Regex, RegexBuilder};

/// Memory that the automaton of one pattern may take, in bytes.
const AUTOMATON_BYTES: usize = 16 << 20;
/// Stands between the halves of a pattern.
pub(super) const GAP: &str = "\n";

/// Patterns of one section.
#[derive(Debug)]
pub(super) struct Patterns {
    any: Option<Regex>,
    /// Any first half of a sequence, and any second half: without both, no sequence is tried.
    halves: (Option<Regex>, Option<Regex>),
    /// Pairs of which the second stands behind the first. Within one pattern, what stands between them would make its automaton
    /// grow with every pair.
    sequences: Vec<(Regex, Regex)>,
}

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> Self {
        let (pairs, single): (Vec<_>, Vec<_>) =
            patterns.iter().cloned().partition(|one| one.contains(GAP));
        let pairs = pairs.iter().filter_map(|pair| pair.split_once(GAP));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        let compile = |one: &str| compile_any(&[one.to_owned()]);
        let (firsts, seconds): (Vec<_>, Vec<_>) = pairs
            .iter()
            .map(|(first, second)| ((*first).to_owned(), (*second).to_owned()))
            .unzip();
        Self {
            any: compile_any(&single),
            halves: (compile_any(&firsts), compile_any(&seconds)),
            sequences: pairs
                .into_iter()
                .filter_map(|(first, second)| compile(first).zip(compile(second)))
                .collect(),
        }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        let (first, second) = &self.halves;
        matches(self.any.as_ref(), text)
            || (matches(first.as_ref(), text)
                && matches(second.as_ref(), text)
                && self.has_sequence(text.as_bytes()))
    }

    fn has_sequence(&self, text: &[u8]) -> bool {
        self.sequences.iter().any(|(first, second)| {
            let first = first.find(text);
            first.is_some_and(|first| second.is_match_at(text, first.end()))
        })
    }
}

pub(super) fn matches(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text.as_bytes()))
}

/// One pattern for any of several; `None` for none.
pub(super) fn compile_any(patterns: &[String]) -> Option<Regex> {
    if patterns.is_empty() {
        return None;
    }
    let all: Vec<String> = patterns.iter().map(|one| format!("(?:{one})")).collect();
    let mut builder = RegexBuilder::new(&all.join("|"));
    // Sentences in the plain form are ASCII; only the triggers are looked for in other texts.
    builder.unicode(false).case_insensitive(true);
    builder
        .size_limit(AUTOMATON_BYTES)
        .dfa_size_limit(AUTOMATON_BYTES);
    let compiled = builder.build();
    debug_assert!(
        compiled.is_ok(),
        "a pattern of rules is wrong: {compiled:?}"
    );
    compiled.ok()
}
