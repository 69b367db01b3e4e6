//! The public items of each crate, as text files that a review can read.

pub(crate) mod api_files;
pub(crate) mod public_items;
