//! Panics: one ends the request it happened in, which is answered, and nothing else.
//!
//! A panic's message may quote what was sent or stored, so only its place in the code is logged.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{AssertUnwindSafe, set_hook};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;

use crate::problem::Problem;

/// What a client is told of a panic.
pub(crate) const PANIC_DETAIL: &str = "a defect of this server: its log says where";

/// A panic was caught.
pub(crate) struct Panicked;

/// Makes panics of the process events of the log, by their place in the code, instead of text on standard error. With
/// `RUST_BACKTRACE=1` they have a backtrace.
pub fn log_panics() {
    set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.unwrap_or_default();
        let backtrace = Backtrace::capture();
        match backtrace.status() {
            BacktraceStatus::Captured => tracing::error!(%place, %backtrace, "a panic"),
            _ => tracing::error!(%place, "a panic"),
        }
    }));
}

/// Runs work, and catches its panic.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    // Unwind safe: locks are taken with `PoisonError::into_inner`, and every guarded section leaves its data consistent.
    let result = AssertUnwindSafe(work).catch_unwind().await;
    result.map_err(|_: Box<dyn Any + Send>| Panicked)
}

impl From<Panicked> for Problem {
    fn from(Panicked: Panicked) -> Self {
        Self::custom("fault", StatusCode::INTERNAL_SERVER_ERROR, PANIC_DETAIL)
    }
}

/// Answers a request that panicked.
pub(crate) async fn respond_to_panic(request: Request, next: Next) -> Response {
    let answer = catch_panic(next.run(request)).await;
    answer.unwrap_or_else(|panicked| Problem::from(panicked).into_response())
}
