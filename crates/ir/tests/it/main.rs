//! The vocabulary, read and written.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is the failed test"
)]

mod fragments;
mod items;
