//! Standing rules: what a person asked for to hold from then on, and what they said about themselves.
//!
//! "Always answer in German", "never push to main", "I am allergic to nuts", "call me Sam": such sentences hold until the person
//! takes them back, however far the conversation has moved on. [`find_statements`] finds them in an item, by lists of phrases for each language
//! in `data/rules`, and finds the sentences that take them back. [`StandingRules`] says which of those of a path still hold.
//!
//! Whose words a sentence is, the origin and the role of its item say (`own_words`); text decides only whether a person's own
//! sentence is a rule. In doubt a rule stays: an old rule costs a few tokens, a lost one costs trust.
//!
//! Everything is a pure function, linear in its text: what was found in an item can be remembered by the hash of its content.
//!
//! Not here: which rules are shown, which depends on what is in view (`contexture-compile`).

mod language;
mod normal_text;
mod path_rules;
mod patterns;
mod statement;
mod word_classes;

pub use path_rules::{RuleOnPath, StandingRules};
pub use statement::{RuleStrength, Statement, StatementKind, find_statements};
