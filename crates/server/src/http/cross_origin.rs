//! What browsers ask for on behalf of pages of other origins (CORS): before a call, by `OPTIONS`, and in its answer.
//!
//! Not here: which origins those are (`access::origins`), and that others are refused (`authenticate`, `proxy::auth`).

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::access::origins::unlisted_origin;
use crate::state::App;

/// The methods that pages may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET,HEAD,POST,PUT,PATCH,DELETE");

/// How long a browser may remember the answer, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Answers a browser's question whether a page may call, and lets pages that may read what they get.
pub(crate) async fn answer_browsers(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    if !headers.contains_key(ORIGIN) {
        return next.run(request).await;
    }
    let origin = app.origins().allowed_origin(headers).cloned();
    let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() == Method::OPTIONS && asks {
        let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        return answer_question(origin, asked);
    }
    let mut response = next.run(request).await;
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        allow_origin(headers, origin);
        // All of them: ours, the provider's request id, `retry-after`.
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed_headers(headers));
    }
    response
}

/// Answers by the list alone: browsers ask without the page's key.
fn answer_question(origin: Option<HeaderValue>, asked: Option<HeaderValue>) -> Response {
    let Some(origin) = origin else {
        return unlisted_origin().into_response();
    };
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow_origin(headers, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(asked) = asked {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
    }
    response
}

fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    // A provider's word on origins is about its own host.
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Returns the names of an answer's headers, as a list.
fn exposed_headers(headers: &HeaderMap) -> HeaderValue {
    let names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
    // Names are visible ASCII, so this is never empty.
    HeaderValue::try_from(names.join(",")).unwrap_or(HeaderValue::from_static(""))
}
