//! The tasks played by a model that follows a script, the bounds of an evaluation, and tau-bench by a stand-in of its program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking, and print what they measured"
)]

mod bounds;
mod policy_file;
mod scripted_model;
mod scripts;
mod tasks;
mod tau_bench;
