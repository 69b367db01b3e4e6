//! The SQLite store: the shared behaviours, and what only a file can suffer.

mod conformance;
mod crash;
mod damage;
mod files;
mod layout;
mod queue;
