//! Rules for plain text that several crates need: folding, words, clipping, similar names.
//!
//! * [`case_folded`]: the lower-case form in which names that differ only in case are equal.
//! * [`search_terms`]: splits text into the folded terms by which it is found, the same for every store.
//! * [`for_each_identifier_word`]: splits identifiers and prose into lower-case words without endings, for ranking.
//! * [`fact_words`]: the paths, URLs, identifiers and numbers among the words of a text.
//! * [`truncate_chars`] and [`one_line_title`]: the beginning of a text, in characters, with `…` where it was cut.
//! * [`strip_code_fence`]: what the only Markdown code block of a text holds.
//! * [`glob_matches`]: whether a name is of the form `get_*`.
//! * [`shorten_line`] and [`head_and_tail`]: both ends of a text, in bytes; [`one_line`], [`one_printable_line`].
//! * [`similar_by_edit_distance`] and [`similar_by_letter_pairs`]: known names to suggest for an unknown one.
//!
//! ```
//! use contexture_text::{
//!     case_folded, for_each_identifier_word, one_line_title, similar_by_edit_distance, truncate_chars,
//! };
//!
//! let mut words = Vec::new();
//! for_each_identifier_word("getUserInfo", |word| words.push(word.to_owned()));
//! assert_eq!(words, ["get", "user", "info"]);
//!
//! assert_eq!(case_folded("Weather"), "weather");
//! assert_eq!(truncate_chars("Hello, world", 5), "Hello…");
//! assert_eq!(one_line_title("  Hello,\n world ", 80), "Hello, world");
//! assert_eq!(similar_by_edit_distance("gpt5.1", ["gpt-5.1", "o3"].into_iter()), ["gpt-5.1"]);
//! ```
//!
//! Features: `search-terms`, on by default, brings the module of that name.
//!
//! Invariants: every function is pure, cuts only between characters, and takes time in proportion to its input
//! (`index_terms` also sorts). Results are part of what callers store or show (search ranks, titles, errors), so a rule
//! here changes for all of them at once: rules that must be able to change independently are separate functions. Not
//! here: fragments, JSON and messages (`contexture-ir`), tokens (`contexture-tokens`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod clip;
pub mod fact_words;
mod fold;
mod glob;
mod identifier_words;
#[cfg(feature = "search-terms")]
pub mod search_terms;
mod similar;
mod unspaced;

pub use clip::{
    head_and_tail, is_unsafe, one_line, one_line_title, one_printable_line, shorten_line,
    strip_code_fence, truncate_chars,
};
pub use fold::case_folded;
pub use glob::glob_matches;
pub use identifier_words::for_each_identifier_word;
pub use similar::{similar_by_edit_distance, similar_by_letter_pairs};
