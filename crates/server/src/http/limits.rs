//! Limits of a request: the length of its head, the time until its answer begins, and between the pieces of its body.
//!
//! Not here: limits of connections (`serve::connections`), of body lengths (`extractors`), of callers
//! (`access::rate_limit`).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::problem::{Code, Problem};
use crate::state::App;

/// Refuses a request whose head is longer than the limit.
pub(crate) async fn check_head_size(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let most = app.config().server.limits.header_bytes;
    let bytes = head_bytes(&request);
    if bytes <= most {
        return next.run(request).await;
    }
    let detail = format!("the head of the request has {bytes} bytes; `header_bytes` allows {most}");
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    // As for longer heads, which are not read to their end.
    Problem::custom("head_too_large", status, detail).into_last_response()
}

/// Returns the length of a request's head, without blanks that a client may add. The listener's own limit is on what it
/// reads, and it reads in steps, so that it only bounds memory.
fn head_bytes(request: &Request) -> usize {
    // `GET /path HTTP/1.1`, each line with its end, and the empty line.
    const LINE_END: usize = "\r\n".len();
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + " ".len() + target + " HTTP/1.1".len() + LINE_END;
    let fields = request.headers().iter();
    let fields =
        fields.map(|(name, value)| name.as_str().len() + ": ".len() + value.len() + LINE_END);
    line + fields.sum::<usize>() + LINE_END
}

/// Refuses when an answer does not begin in time. The handler is dropped: what it stores is stored as a whole or not at all.
pub(crate) async fn with_timeout(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    // Applied to the routes of the API only: answers of models take as long as they take.
    let seconds = app.config().server.limits.request_seconds;
    tokio::time::timeout(Duration::from_secs(seconds), next.run(request))
        .await
        .map_err(|_| Problem::new(Code::TimedOut, format!("no answer within {seconds} s")))
}

/// Fails the body of a client that pauses for too long, wherever it is read.
pub(crate) async fn with_idle_timeout(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let pause = Duration::from_secs(app.config().server.limits.body_seconds);
    let timed = |body: Body| match body.is_end_stream() {
        // Most requests have no body and need no timer.
        true => body,
        false => Body::new(IdleTimeoutBody {
            body,
            pause,
            wait: None,
        }),
    };
    next.run(request.map(timed)).await
}

/// A body whose pauses are short, or it ends with an error.
struct IdleTimeoutBody {
    body: Body,
    pause: Duration,
    /// Runs while a piece is waited for.
    wait: Option<Pin<Box<Sleep>>>,
}

/// A client said nothing for too long.
#[derive(Debug, thiserror::Error)]
#[error("nothing came for {} s", .0.as_secs())]
struct IdleTimeoutError(Duration);

impl HttpBody for IdleTimeoutBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        // Polled before the timer: a piece that has come is never too late.
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.wait = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let pause = self.pause;
        // Started only when a piece is missing: time in which the handler does not read is not the
        // client's.
        let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(pause)));
        std::task::ready!(wait.as_mut().poll(context));
        Poll::Ready(Some(Err(IdleTimeoutError(pause).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
