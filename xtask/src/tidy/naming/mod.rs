//! Rules on names and signatures of items.

pub(crate) mod name_counts;
pub(crate) mod names;
pub(crate) mod signatures;
