//! Answers with pages, and the headers that keep them to themselves.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use contexture_inspector::Reply;

/// Nothing but the server's own files: no script or style in a page, nothing from elsewhere, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(super) fn write_reply(reply: Reply) -> Response {
    match reply {
        Reply::Page { status, html } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            html_response(status, html)
        }
        Reply::Json(json) => text_response("application/json", json),
        Reply::Text(text) => text_response("text/plain; charset=utf-8", text),
        // A form was sent: its answer is a page, and loading that again sends nothing again.
        Reply::Redirect(path) => with_page_headers(Redirect::to(&path).into_response()),
    }
}

pub(super) fn html_response(status: StatusCode, html: String) -> Response {
    let mut response = text_response("text/html; charset=utf-8", html);
    *response.status_mut() = status;
    response
}

fn text_response(media_type: &'static str, text: String) -> Response {
    with_page_headers(([(CONTENT_TYPE, media_type)], text).into_response())
}

/// Adds what a browser may do with an answer. What it is may be kept by nobody, unless the answer says otherwise.
pub(super) fn with_page_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let no_store = HeaderValue::from_static("no-store");
    headers.entry(CACHE_CONTROL).or_insert(no_store);
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
