//! Session logs: read, and written again without a difference.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod claude;
mod codex;
mod deepagents;
mod detected;
mod exact;
mod faults;
mod foreign;
mod usage;
