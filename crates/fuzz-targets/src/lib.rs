//! Fuzz targets: for every parser of bytes that strangers send, a function that reads them and checks what must hold.
//!
//! What must hold: nothing panics; what was read is written and read again as the same; what is written is valid and
//! not much longer than what was read. [`TARGETS`] lists the functions, each with its corpus: recordings of
//! `contexture-testdata` and small seeds. The tests of this crate run each target on its corpus and on random
//! mutations of it; `fuzz/` has a libFuzzer binary for each, which `cargo xtask soak` runs.
//!
//! Only for tests: a broken invariant panics.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is the finding"
)]

mod input;
mod mutation;
mod names;
mod plans;
mod portable;
mod protocol;
mod session_logs;
mod small_texts;
mod streams;
mod target;
mod wire_documents;

pub use mutation::Mutator;
pub use target::{FuzzTarget, TARGETS, find_target};
