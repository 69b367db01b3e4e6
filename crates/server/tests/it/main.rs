//! The server as its clients meet it: over HTTP, on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod abuse;
mod api_description;
mod blobs;
mod branches;
mod bystander;
mod cassettes;
mod clients;
mod compiling;
mod configuration;
mod conversations;
mod described;
mod events;
mod idempotency;
mod inspector;
mod keys;
mod listening;
mod log;
mod loops;
mod mcp;
mod messages;
mod notes;
mod owners;
mod proxy;
mod published;
mod rules;
mod running;
mod searching;
mod settings;
mod skills;
mod test_support;
mod texts;
mod transfer;
