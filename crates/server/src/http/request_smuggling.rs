//! Request smuggling: requests that could be read in two ways are refused, and their connection is closed.
//!
//! A proxy must read requests as every hop before and behind it does, or one request becomes two on the way. Most ambiguity
//! is refused by the HTTP library; of a length beside chunks it ignores the length and closes the connection after the
//! answer (RFC 9112, 6.3). This module refuses what the library lets through.
//!
//! An `upgrade` is not ambiguous: it is an offer, which is not taken and not forwarded.

use axum::extract::Request;
use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderValue, Method, Version};
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::{Code, Problem};

/// Refuses requests with ambiguous framing or host.
pub(crate) async fn reject_ambiguous_framing(request: Request, next: Next) -> Response {
    let Err(why) = check_framing(&request) else {
        return next.run(request).await;
    };
    // Whatever else is in the connection's buffer may be the smuggled request.
    Problem::new(Code::BadHeader, why).into_last_response()
}

fn check_framing(request: &Request) -> Result<(), &'static str> {
    if request.method() == Method::CONNECT {
        return Err("there are no tunnels here");
    }
    check_transfer_encoding(request.headers())?;
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    // RFC 9112, 3.2: a server answers 400 to a request with more than one, or with none since
    // HTTP/1.1.
    if hosts.next().is_some() {
        return Err("there is more than one `host`");
    }
    if host.is_none() && request.version() >= Version::HTTP_11 {
        return Err("there is no `host`");
    }
    // Only the absolute form has one (RFC 9112, 3.2.2). Hops differ in whether they route by it or
    // by `host`.
    let Some(named) = request.uri().authority() else {
        return Ok(());
    };
    let same = |host: &HeaderValue| {
        host.as_bytes()
            .eq_ignore_ascii_case(named.as_str().as_bytes())
    };
    match host.is_none_or(same) {
        true => Ok(()),
        false => Err("the request's line and `host` name different hosts"),
    }
}

/// Accepts a body in chunks or of a known length, and no other encoding.
fn check_transfer_encoding(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(()),
        (Some(one), None) if chunked(one) => Ok(()),
        _ => Err("the only `transfer-encoding` that is known is `chunked`, once"),
    }
}
