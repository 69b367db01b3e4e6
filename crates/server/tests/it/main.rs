//! The server as its clients meet it: over HTTP, on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod clients;
mod configuration;
mod conversations;
mod keys;
mod listening;
mod stand;
