//! The provider's prompt cache as a model: what a payload is to it, where marks go, what a call will
//! read and write, and whether rewriting a cached history is worth it.
//!
//! Everything here is a function of its arguments; time is a parameter. Not here: decisions about the
//! history itself, which are the passes'.

pub(crate) mod bill;
pub(crate) mod content;
pub(crate) mod diff;
pub(crate) mod marks;
pub(crate) mod outline;
pub(crate) mod predict;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod trace;
pub(crate) mod worth;
