//! Work that runs, and how it is cancelled, repeated and run in parallel.
//!
//! An [`Abort`] cancels a run and every run below it; [`run_with_retries`] repeats what failed for a moment, with
//! a *backoff* between attempts; [`parallel`] runs tasks side by side up to a limit. Nothing here knows runs, models or tools.
//!
//! * An abort has a *reason*; the first one counts. It goes down the tree of runs, never up.
//! * Work is cut where it next waits. What is done at the moment of the abort counts as done.
//! * An error is *retryable* if the same request may succeed a moment later, such as a rate limit or a lost connection.
//! * A group of tasks reports every result, also where some failed: [`PartialFailure`] holds both.
//!
//! Code of others (tools, stop conditions, observers) may panic. Unwinding through a caught panic is safe: what the code
//! worked on is dropped with it.

mod cancel;
pub mod parallel;
mod retry;

use std::any::Any;

pub use cancel::{Abort, Cancelled};
pub use parallel::{ConcurrencyLimit, PartialFailure};
pub use retry::run_with_retries;

/// Returns the message of a caught panic, as an error text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a word"))
}
