//! Layers: the running of their hooks, and those that are built in.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test, and layers that panic are what is tested"
)]

mod conversation_fixture;
mod eventual;
mod failures;
mod functions;
mod guardrails;
mod history;
mod instructions;
mod isolation;
mod layer_fixture;
mod lists;
mod memory;
mod notes;
mod observations;
mod order;
mod plan;
mod recording_layer;
mod reminders;
mod retrieval;
mod scratchpad;
mod skills;
mod state;
mod states;
