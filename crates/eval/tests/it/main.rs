//! The tasks played by a model that follows a script, the bounds of an evaluation, and tau-bench by a stand-in of its program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod bounds;
mod policy_file;
mod scripted_model;
mod scripts;
mod tasks;
mod tau_bench;
