//! The passes, one file each; none knows another. Their order is in [`crate::pipeline`].

pub(crate) mod budget;
pub(crate) mod lower;
pub(crate) mod place;
pub(crate) mod repair;
pub(crate) mod select;
pub(crate) mod verify;
