//! A manifest: what stands for a span of items that is no longer shown, made by rules.
//!
//! [`Manifest::from_items`] reads a span into lists (files, commands, errors, identifiers, …); [`Manifest::render`] makes of them
//! a text of bounded size. Both are functions of their arguments, so the same span gives the same text in every request and
//! a cached prefix stays valid.
//!
//! * `data` holds the lists, `build` fills them in the order of the items.
//! * `sections` turns them into entries and says in which order lists are useful.
//! * `render` chooses the entries that fit the budget, the most useful first, and writes them in a fixed order.
//!
//! A value is written once: under its name where it has one, else in the list of its kind, else not at all where another line
//! has it. What is left out is counted in the last line.
//!
//! Not here: choosing the span, and summaries written by a model (`summary`).

mod build;
mod data;
mod render;
mod sections;

pub use data::{
    CommandEntry, CoveredItem, Decision, FileEntry, LinkEntry, Manifest, ManifestEntry,
    NamedValues, Speaker,
};
pub use render::{ManifestText, TextBudget};
