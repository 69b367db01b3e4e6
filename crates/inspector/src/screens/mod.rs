//! The screens, a file each: what they read of the API, and how it is drawn.

pub(crate) mod actions;
pub(crate) mod call;
pub(crate) mod compare;
pub(crate) mod conversations;
pub(crate) mod failure;
mod lanes;
pub(crate) mod memory;
mod messages;
pub(crate) mod money;
mod part;
pub(crate) mod raw;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod skills;
pub(crate) mod thread;
pub(crate) mod what_if;
