//! What runs stand on, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod agents;
mod appended_items;
mod cancelling;
mod concurrency;
mod conflicting_writers;
mod crash;
mod denied;
mod final_answers;
mod inbox;
mod laws;
mod layers;
mod lifecycle;
mod manual_poll;
mod modes;
mod ownership;
mod process_kill;
mod protocols;
mod queue_model;
mod queued_runs;
mod random_drivers;
mod recorded_calls;
mod regressions;
mod resume;
mod run_context;
mod scripted_agent;
mod side_by_side;
mod spans;
mod sub_agents;
mod test_support;
mod too_long;
mod tool_calls;
mod tool_names;
mod typed_tools;
mod usage;
