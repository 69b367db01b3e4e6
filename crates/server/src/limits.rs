//! How long an answer may take.
//!
//! Limits of heads and connections are the listener's, of bodies the extractors', of callers those of `load`.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::problem::{Code, Problem};

/// Refuses when an answer does not begin in time. What the handler did by then is done or undone as a whole.
pub(crate) async fn in_time(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let seconds = app.config().server.limits.request_seconds;
    tokio::time::timeout(Duration::from_secs(seconds), next.run(request))
        .await
        .map_err(|_| Problem::new(Code::TimedOut, format!("no answer within {seconds} s")))
}
