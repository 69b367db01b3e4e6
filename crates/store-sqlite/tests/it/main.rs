//! The SQLite store: the shared behaviours, and what only a file can suffer.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod call_sweeps;
mod children;
mod conformance;
mod corrupted_files;
mod crash;
mod damage;
mod deepagents;
mod disk;
mod files;
mod full;
mod histories;
mod layout;
mod maintenance;
mod own_mounts;
mod power;
mod presence;
#[cfg(unix)]
mod privacy;
mod processes;
mod queue;
mod random_operations;
mod refused;
mod removal;
mod schema;
mod searching;
mod strace;
