//! Conversations, drafts, branches, answers: what a program sees of the engine.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test, and what was measured is shown"
)]

mod background_summaries;
mod built_in;
mod calibration;
mod call_context;
mod calls;
mod compaction;
mod compaction_laws;
mod copies;
mod deepagents;
mod draft_plans;
mod drafts;
mod events;
mod follow;
mod fragments;
mod growing_paths;
mod imports;
mod ingest;
mod layers;
mod native;
mod offload;
mod past_calls;
mod path_cache;
mod pins;
mod recalling;
mod recorded_changes;
mod regressions;
mod replay;
mod request_settings;
mod resolving;
mod retrieval;
mod secrets;
mod spans;
mod standing_rules;
mod support;
mod tools;
mod tree;
