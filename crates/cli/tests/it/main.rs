//! The command as its users meet it: what it prints, what it refuses, how it ends.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod caching;
mod calls;
mod chatting;
mod command;
mod compatible_hosts;
mod compile;
mod completing;
mod container;
mod deepagents;
mod documents;
mod earlier_version;
mod errors;
#[cfg(target_os = "linux")]
mod file_system;
mod killed_server;
mod maintenance;
mod mcp;
mod memory;
mod operating;
mod pipes;
mod postgres;
mod reading;
mod replaying;
mod reporting;
mod resources;
mod rules;
mod sample;
mod searching;
mod serving;
mod sessions;
mod skills;
mod stored_conversations;
#[cfg(target_os = "linux")]
mod streams;
mod talking;
mod two_processes;
mod waiting;
mod widths;
