//! The public items of each crate, as text files for review.

pub(crate) mod api_files;
pub(crate) mod public_items;
