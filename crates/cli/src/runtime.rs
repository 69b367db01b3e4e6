//! Waiting for the store, whose calls are async.

use std::future::Future;
use std::pin::Pin;

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

use tokio::runtime::Builder;

/// Runs a future to its end on this thread.
///
/// # Errors
/// The future's, or the system gives no runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    block_on_runtime(Builder::new_current_thread(), Box::pin(future))
}

#[cfg(feature = "serve")]
/// Runs a future to its end on as many threads as there are processors: it serves many at a time.
///
/// # Errors
/// As [`block_on`].
pub(crate) fn block_on_pool<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    block_on_runtime(Builder::new_multi_thread(), Box::pin(future))
}

/// Boxed, so that the runtime is compiled for each result and not for each command.
fn block_on_runtime<T>(
    mut builder: Builder,
    future: Pin<Box<dyn Future<Output = Outcome<T>> + '_>>,
) -> Outcome<T> {
    let runtime = builder.enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::Fault, "runtime", format!("cannot start: {error}")))?;
    runtime.block_on(future)
}
