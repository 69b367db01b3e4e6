//! Layers: the running of their hooks, and those that are built in.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is the failed test, and layers that panic are what is tested"
)]

mod eventual;
mod failures;
mod functions;
mod guardrails;
mod isolation;
mod lists;
mod observations;
mod order;
mod plan;
mod probe;
mod reminders;
mod retrieval;
mod skills;
mod stage;
mod states;
