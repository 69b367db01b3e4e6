//! Waiting for the store, whose calls are async.

use std::future::Future;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Runs a future to its end on this thread.
///
/// # Errors
/// The future's, or the system gives no runtime.
pub(crate) fn for_it<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::Fault, "runtime", format!("cannot start: {error}")))?;
    runtime.block_on(future)
}
