//! Capture: the request and its answer are read beside their way, and stored in their conversation.
//!
//! One background task per request (`task`) ingests the request (`ingest`), reads a copy of the answer's bytes (`tee`,
//! `parse_answer`) and stores the answer with the row of its exchange (`store_answer`). The client's way never waits for it, except
//! for a rewritten request, and then no longer than the policy's timeout, and for the last of an answer where other servers
//! use the store (`hold`).

pub(super) mod hold;
pub(super) mod ingest;
pub(super) mod parse_answer;
pub(super) mod store_answer;
pub(super) mod task;
pub(super) mod tee;
