//! Rendering, seen from outside.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test, also in a test's own functions"
)]

mod formats;
mod hostile;
mod limits;
mod markdown;
mod reference;
mod toon_spec;
mod trees;
mod words;
mod xml;
