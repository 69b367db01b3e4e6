//! Conversations, drafts, branches, answers: what a program sees of the engine.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod aside;
mod built_in;
mod calibration;
mod calls;
mod compaction;
mod copies;
mod deepagents;
mod drafts;
mod events;
mod follow;
mod grown;
mod imports;
mod layers;
mod lessons;
mod matching;
mod native;
mod offload;
mod pins;
mod recalling;
mod replay;
mod retrieval;
mod secrets;
mod seen;
mod spans;
mod support;
mod tools;
mod tree;
