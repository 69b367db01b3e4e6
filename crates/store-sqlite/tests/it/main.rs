//! The SQLite store: the shared behaviours, and what only a file can suffer.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod conformance;
mod crash;
mod damage;
mod files;
mod layout;
mod processes;
mod queue;
mod removal;
mod searching;
