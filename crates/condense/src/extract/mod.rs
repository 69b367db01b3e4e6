//! Facts read from texts and calls by rules: what a tool did, which words are identifiers, which lines are errors.
//!
//! Every reader here is a heuristic that prefers silence to a wrong fact, and that takes time linear in its text. A fact is
//! a value as it stands in the text: nothing is rephrased.
//!
//! Not here: which facts a manifest shows, and in which order (`manifest`).

pub(crate) mod decisions;
pub(crate) mod errors;
pub(crate) mod fact_words;
pub(crate) mod json_facts;
pub(crate) mod shell;
pub(crate) mod tool_effects;
