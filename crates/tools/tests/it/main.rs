//! What the tools crate promises: offers, groups, routes, arguments, and how well selection finds.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod finding;
mod groups;
mod lessons;
mod material;
mod offering;
mod reading;
mod registering;
mod routes;
mod thousand;
