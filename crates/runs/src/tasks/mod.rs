//! Cancellation, retries and parallel work.
//!
//! An [`Abort`] cancels a run and its child runs; [`run_with_retries`] retries transient failures, with a *backoff*
//! between attempts; [`parallel`] runs tasks concurrently up to a limit. Nothing here knows runs, models or tools.
//!
//! * An abort has a *reason*; the first one counts. It propagates to child runs, never to parents.
//! * Work is cut off at its next await. A result that is ready at the moment of the abort counts.
//! * An error is *retryable* if the same request may succeed a moment later, such as a rate limit or a lost connection.
//! * A group of tasks reports every result, also if some failed: [`PartialFailure`] holds both.
//!
//! Foreign code (tools, stop conditions, observers) may panic. Catching the panic is safe: what the code worked on is
//! dropped with it.

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
