//! What runs stand on, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod agents;
mod appended;
mod crash;
mod crowd;
mod denied;
mod inbox;
mod killed;
mod laws;
mod layers;
mod lessons;
mod modes;
mod poll;
mod protocols;
mod queue_model;
mod resumed;
mod rivals;
mod scene;
mod side_by_side;
mod spans;
mod stand;
mod tally;
mod tool_calls;
