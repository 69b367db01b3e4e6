//! Calls that were made: what is known of one, which are of a branch, and what one would have been.
//!
//! * `past_call`: one call with its parts, and the difference of two requests;
//! * `branch_calls`: the calls whose answers are on a branch;
//! * `what_if`: a call with another model, window or policy.

mod branch_calls;
mod past_call;
mod what_if;

pub use branch_calls::{BranchCalls, list_branch_calls};
pub use past_call::{CallPart, describe_call, diff_requests, parse_call_id};
pub use what_if::{compile_call_what_if, compile_what_if};
