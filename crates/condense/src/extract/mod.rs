//! Facts read from texts and calls by rules: what a tool did, which words are identifiers, which lines are errors.
//!
//! * `fact_words` finds paths, URLs, identifiers and numbers among the words of a text, by their characters alone.
//! * `json_facts` reads the values of JSON with their names.
//! * `tool_effects` reads from a call which files it touches, which command it runs and which tasks it sets.
//! * `shell` does so for the words of a shell command.
//! * `errors` finds lines that tell of errors, and exit codes.
//! * `decisions` finds sentences that decide or ask for something, and shortens texts to a line.
//!
//! Every reader is a heuristic that prefers silence to a wrong fact, and takes time linear in its text. A fact is a value as it
//! stands in the text: nothing is rephrased, so it can be searched for later.
//!
//! The lists of words are English and those of common tools and programs. A text in another language gives fewer facts, never
//! wrong ones on that account.
//!
//! Texts are data: nothing in them is followed, run or looked up.
//!
//! Not here: which facts a manifest shows, and in which order (`manifest`); the lines of a preview (`preview`), which looks
//! for errors with rules of its own as it reads outputs of many megabytes.

pub(crate) mod decisions;
pub(crate) mod errors;
pub(crate) mod json_facts;
pub(crate) mod shell;
pub(crate) mod tool_effects;
