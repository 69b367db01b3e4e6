//! The PostgreSQL store: the shared behaviours, and what only a server can do to it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod conformance;
mod faults;
mod opening;
mod proxy;
mod searching;
mod server;
mod statements;
