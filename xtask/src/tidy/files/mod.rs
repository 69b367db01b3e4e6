//! Input of the checks: the files of the repository, lexed Rust source, and the paths in it.
//!
//! Not here: rules.

pub(crate) mod paths;
pub(crate) mod source;
pub(crate) mod workspace;
