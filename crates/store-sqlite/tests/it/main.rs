//! The SQLite store: the shared behaviours, and what only a file can suffer.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod chance;
mod children;
mod conformance;
mod crash;
mod damage;
mod deepagents;
mod disk;
mod files;
mod full;
mod layout;
mod own_mounts;
mod power;
mod processes;
mod queue;
mod refused;
mod removal;
mod schema;
mod searching;
mod strace;
mod upkeep;
mod wreck;
