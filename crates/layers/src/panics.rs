//! Panics of layers, made errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::LayerError;

/// Runs work that takes no time. A panic is a failure like any other.
///
/// Unwinding is safe: what the work changes is a copy that is dropped with the failure.
pub(crate) fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, LayerError>,
) -> Result<T, LayerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(&panic)))
}

/// A panic as a failure, with what it said.
pub(crate) fn panic_error(panic: &Box<dyn Any + Send>) -> LayerError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    LayerError::from_message(format!("it panicked: {}", text.unwrap_or("without a word")))
}
