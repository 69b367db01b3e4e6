//! The wire crate against recorded traffic and hand-written cases.
mod items;
mod ui;
