//! What the tools crate promises: offers, groups, routes, arguments, and how well selection finds.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod finding;
mod fixtures;
mod groups;
mod large_registry;
mod offering;
mod reading;
mod registering;
mod regressions;
mod routes;
