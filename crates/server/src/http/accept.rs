//! What callers take for an answer.

use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::{Code, Problem};

/// What there is to give, and what stands for it.
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

/// Refuses callers who take nothing that there is to give.
pub(crate) async fn check_accept_header(request: Request, next: Next) -> Result<Response, Problem> {
    let mut asked = request.headers().get_all(ACCEPT).iter().peekable();
    let given = |value: &str| {
        let kinds = value
            .split(',')
            .map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds.into_iter().any(|kind| {
            kind.is_empty()
                || SERVED_MEDIA_TYPES
                    .iter()
                    .any(|given| given.eq_ignore_ascii_case(kind))
        })
    };
    if asked.peek().is_none() || asked.any(|value| value.to_str().is_ok_and(given)) {
        return Ok(next.run(request).await);
    }
    let detail = "nothing of what `accept` says is given here; `application/json` is";
    Err(Problem::new(Code::NotAcceptable, detail))
}
