//! The PostgreSQL store: the shared behaviours, and what only a server can do to it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod children;
mod conformance;
mod dialogues;
mod faults;
mod histories;
mod maintenance;
mod opening;
mod own_server;
mod processes;
mod proxy;
mod recall;
mod removal;
mod searching;
mod server;
mod statements;
mod tls;
