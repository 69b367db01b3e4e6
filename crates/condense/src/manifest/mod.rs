//! A manifest: replaces a span of items that is no longer shown, built by rules.
//!
//! [`Manifest::from_items`] reads a span into lists (files, commands, errors, identifiers, …); [`Manifest::render`]
//! writes them as a text of bounded size. Both are pure functions, so the same span gives the same text in every
//! request and a cached prefix stays valid.
//!
//! * `data` defines the lists, `build` fills them in the order of the items.
//! * `sections` turns them into entries, and says in which order those of a list are chosen.
//! * `render` chooses the entries that fit the budget, list by list, and writes them in a fixed order.
//!
//! The user's words and the calls that changed something come first and have a share of the budget that nothing else can
//! take. A value is written once, with its name or its owner, and not at all if another line contains it. Of changes and
//! files that have no room a line tells how many there are; the last line counts what else was left out.
//!
//! Not here: choosing the span, and summaries written by a model (`summary`).

mod build;
mod data;
mod questions;
mod render;
mod sections;

pub use data::{
    ChangeOutcome, ChangingCall, CommandEntry, CoveredItem, Fact, FileEntry, LinkEntry, Manifest,
    ManifestEntry, NamedValues, SentenceKind, UserSentence,
};
pub use render::{ManifestText, TextBudget};
