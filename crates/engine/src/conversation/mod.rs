//! TODO.

mod branches;
mod call;
mod compaction;
mod layers;
mod read;
mod write;
