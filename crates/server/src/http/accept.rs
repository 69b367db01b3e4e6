//! Content negotiation: refuses callers that accept none of the media types that the API serves.

use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::{Code, Problem};

/// The media types that are served, and the ranges that include them.
const SERVED_MEDIA_TYPES: [&str; 9] = [
    "*/*",
    "application/*",
    "application/json",
    "application/problem+json",
    "application/jsonl",
    "application/octet-stream",
    "text/*",
    "text/plain",
    "text/event-stream",
];

/// Refuses requests whose `accept` allows none of the served media types.
pub(crate) async fn check_accept_header(request: Request, next: Next) -> Result<Response, Problem> {
    // Coarse on purpose: quality values are ignored, and a handler may still answer with another served type.
    let mut accepted = request.headers().get_all(ACCEPT).iter().peekable();
    let is_served = |value: &str| {
        let kinds = value
            .split(',')
            .map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds.into_iter().any(|kind| {
            kind.is_empty()
                || SERVED_MEDIA_TYPES
                    .iter()
                    .any(|served| served.eq_ignore_ascii_case(kind))
        })
    };
    if accepted.peek().is_none() || accepted.any(|value| value.to_str().is_ok_and(is_served)) {
        return Ok(next.run(request).await);
    }
    let detail = "nothing of what `accept` says is given here; `application/json` is";
    Err(Problem::new(Code::NotAcceptable, detail))
}
