//! Defects: a panic ends the request it happened in, which is answered, and nothing else.
//!
//! What a panic says may be of what was sent or stored: it is told where it happened, and no more.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{AssertUnwindSafe, set_hook};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;

use crate::problem::Problem;

/// What is told of one.
pub(crate) const PANIC_DETAIL: &str = "a defect of this server: its log says where";

/// That there was one.
pub(crate) struct Panicked;

/// From now on panics of the process are events of the log, by their places, in the place of the text that Rust writes to
/// standard error. With `RUST_BACKTRACE=1` it is told how it came there.
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

/// What comes of work, unless it panics. What it shares is left as it was: every lock of ours goes on after a panic.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|_: Box<dyn Any + Send>| Panicked)
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
