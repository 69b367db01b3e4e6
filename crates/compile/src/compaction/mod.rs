//! What stands for items that are no longer shown: a manifest made by rules, a summary made by a model.
//!
//! [`Manifest::from_items`] reads a span of items into lists (files, commands, errors, identifiers, …);
//! [`Manifest::render`] makes of them a text of bounded size. Both are functions.
//!
//! [`summary_task`] is what a model is asked, [`read_summary`] reads what it answers.
//!
//! Not here: choosing the span, asking a model, storing anything.

mod deeds;
mod entries;
mod errors;
mod facts;
mod gather;
pub(crate) mod inline;
mod manifest;
mod native;
mod render;
mod sentence;
mod shell;
mod summary;
mod words;

pub use crate::passes::cover::{ActiveCovers, COVERS};
pub use manifest::{
    CommandEntry, CoveredItem, Decision, FileEntry, LinkEntry, Manifest, ManifestEntry,
    NamedValues, Speaker,
};
pub use native::NativeCompaction;
pub use render::{ManifestText, TextBudget};
pub use summary::{
    SummaryError, SummaryOptions, SummaryTask, read_summary, summary_lines, summary_task,
};
