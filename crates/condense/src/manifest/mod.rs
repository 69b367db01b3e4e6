//! A manifest: what stands for a span of items that is no longer shown, made by rules.
//!
//! [`Manifest::from_items`] reads a span into lists (files, commands, errors, identifiers, …); [`Manifest::render`] makes of them a
//! text of bounded size. Both are functions of their arguments, so the same span gives the same text in every request and
//! a cached prefix stays valid.
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
