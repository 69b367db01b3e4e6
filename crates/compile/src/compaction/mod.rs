//! What stands for items that are no longer shown: a manifest made by rules.
//!
//! [`Manifest::of`] reads a span of items into lists (files, commands, errors, identifiers, …);
//! [`Manifest::render`] makes of them a text of bounded size. Both are functions.
//!
//! Not here: choosing the span, asking a model, storing anything.

mod deeds;
mod entries;
mod errors;
mod facts;
mod gather;
mod manifest;
mod render;
mod sentence;
mod shell;
mod words;

pub use manifest::{
    CommandEntry, Covered, Decision, Entry, FileEntry, LinkEntry, Manifest, NamedValues, Speaker,
};
pub use render::{Allowance, ManifestText};
