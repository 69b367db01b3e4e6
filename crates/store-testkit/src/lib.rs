//! The behaviours every conversation store must show, each written once.
//!
//! A backend hands [`run_all`] a way to open an empty store; every [`Behaviour`] of the table runs
//! on a store of its own and fails by panicking, like any test. [`model`] drives a store against a
//! plain model with random operations.
//!
//! What is not here: crashes, damaged files, disk space (they are the backend's own tests).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a behaviour that does not hold fails by panicking: that is what a test is"
)]

mod behaviour;
mod behaviours;
pub mod chat;
mod faulty;
mod method;
pub mod model;
mod run;

pub use behaviour::{Behaviour, Level, Running};
pub use behaviours::behaviours;
pub use chat::Chat;
pub use faulty::{Chances, Fault, Faulty};
pub use method::Method;
pub use run::run_all;
