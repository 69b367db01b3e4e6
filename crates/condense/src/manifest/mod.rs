//! A manifest: replaces a span of items that is no longer shown, built by rules.
//!
//! [`Manifest::from_items`] reads a span into lists (files, commands, errors, identifiers, …); [`Manifest::render`]
//! writes them as a text of bounded size. Both are pure functions, so the same span gives the same text in every
//! request and a cached prefix stays valid.
//!
//! * `data` defines the lists, `build` fills them in the order of the items.
//! * `sections` turns them into entries and ranks the lists by usefulness.
//! * `render` chooses the entries that fit the budget, the most useful first, and writes them in a fixed order.
//!
//! A value is written once: with its name if it has one, otherwise in the list of its kind, and not at all if another
//! line contains it. The last line counts the entries that were left out.
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
