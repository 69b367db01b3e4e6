//! Repeating a call that failed, as the contract allows.

use std::future::Future;

use contexture_store::Error;

/// Repeats a call while it may be repeated; gives what it gave. `done`: what says, after an unknown
/// outcome, that the call had taken effect.
pub(crate) async fn until_done<T, F: Future<Output = Result<T, Error>>>(
    done: &[&str],
    call: impl Fn() -> F,
) -> Option<T> {
    let mut unknown = false;
    for _ in 0..40 {
        match call().await {
            Ok(done) => return Some(done),
            Err(error) if error.is_retryable() => unknown |= error.kind() == "outcome_unknown",
            Err(error) if unknown && done.contains(&error.kind()) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("repeating it does not help");
}
