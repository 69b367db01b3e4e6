//! What the checks look at: the files of the repository, lexed Rust source, and what paths in it mean.
//!
//! Not here: any rule.

pub(crate) mod paths;
pub(crate) mod source;
pub(crate) mod workspace;
