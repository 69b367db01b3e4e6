//! The passes, one file each. Their order is in [`crate::pipeline`]; they share entries and pieces, and
//! only `place` runs others, on what is contributed.

pub(crate) mod budget;
pub(crate) mod clear;
pub(crate) mod cover;
pub(crate) mod host;
pub(crate) mod lower;
pub(crate) mod place;
pub(crate) mod preview;
pub(crate) mod repair;
pub(crate) mod select;
pub(crate) mod verify;
