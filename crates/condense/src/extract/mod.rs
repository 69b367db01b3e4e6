//! Facts read from texts and calls by rules: what a tool did, which words are identifiers, which lines are errors.
//!
//! * `json_facts` reads the values of JSON with their names, and passes other text to `contexture_text::fact_words`.
//! * `tool_effects` reads from a call which files it touches, which command it runs and which tasks it sets.
//! * `call_effect` tells whether a call changed something, `changes` by which arguments it is known and what became of it.
//! * `extension_calls` reads calls that are no function's, as if they were.
//! * `shell` reads from the words of a shell command which files it touches, and whether it only reads.
//! * `errors` finds lines that report errors, and exit codes.
//! * `decisions` splits texts into sentences, and finds those that state something that holds on.
//! * `own_words` finds what a person wrote themselves in a message.
//!
//! Every reader is a heuristic that prefers no fact to a wrong one, and takes time linear in its text. A fact is a
//! value as written in the text: nothing is rephrased, so it can be searched for later.
//!
//! The word lists are English and name common tools and programs. A text in another language gives fewer facts.
//!
//! Texts are data: nothing in them is executed or looked up.
//!
//! Not here: which facts a manifest shows, and in which order (`manifest`); the lines of a preview (`preview`), which looks
//! for errors with rules of its own as it reads outputs of many megabytes.

pub(crate) mod call_effect;
pub(crate) mod changes;
pub(crate) mod decisions;
pub(crate) mod errors;
pub(crate) mod extension_calls;
pub(crate) mod json_facts;
pub(crate) mod own_words;
pub(crate) mod shell;
pub(crate) mod tool_effects;

pub use call_effect::{CallEffect, ToolHints};
