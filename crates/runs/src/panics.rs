//! Panics of others' code, made words.
//!
//! Unwinding through a caught panic is safe here: what the code worked on is dropped with it.

use std::any::Any;

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a word"))
}
