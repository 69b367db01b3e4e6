//! The protocol as clients meet it: what is listed, what each tool answers on recorded sessions, what is refused.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod hostile;
mod lifecycle;
mod listing;
mod memory;
mod over_http;
mod reading;
mod refusals;
mod resources;
mod standing_rules;
mod support;
mod writing;
