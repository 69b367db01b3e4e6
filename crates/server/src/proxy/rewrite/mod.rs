//! Rewriting: what a policy sends in the place of a client's request.

pub(super) mod cost_check;
pub(super) mod filter_tools;
pub(super) mod injected_layers;
mod plan;
pub(super) mod redact;
mod replace_history;
mod select_tools;

pub(super) use plan::*;
