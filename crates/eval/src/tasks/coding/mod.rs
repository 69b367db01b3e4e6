//! Changes of a tree of source files.

mod changes;
mod file_tree;

pub(crate) use changes::coding_tasks;
