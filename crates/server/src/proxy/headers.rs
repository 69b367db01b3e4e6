//! Header forwarding: hop-by-hop headers (RFC 9110, 7.6.1), cookies and our own are removed, all others pass.

use axum::http::HeaderMap;
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST, HeaderName, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use crate::proxy::control_headers::HEADER_PREFIX;

/// Headers that concern a single connection.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Returns the headers of a request that are forwarded. Host and length are set anew for the outgoing request.
pub(crate) fn forwarded_request_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = end_to_end_headers(headers);
    // `expect` was answered by this server, and cookies of one origin are not for another.
    for name in [HOST, CONTENT_LENGTH, COOKIE, EXPECT] {
        passed.remove(name);
    }
    without_contexture_headers(passed)
}

/// Returns the headers of an answer that are passed back.
pub(crate) fn forwarded_response_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = end_to_end_headers(headers);
    // A provider's cookie would be set for this server's host.
    passed.remove(SET_COOKIE);
    without_contexture_headers(passed)
}

/// Whether a request asks to go on as a WebSocket.
pub(crate) fn is_websocket_upgrade(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(UPGRADE).iter();
    let mut offers = offers
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    offers.any(|offer| offer.trim().eq_ignore_ascii_case("websocket"))
}

/// Whether a body is JSON, by its content type.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    // Loosely, so that a charset behind the type and types such as `application/vnd.api+json`
    // count.
    kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("json"))
}

/// Returns the length of an answer's body, where its head has it.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn end_to_end_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    let named = headers.get_all(CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(','));
    // A sender may declare further headers hop-by-hop by naming them in `connection`.
    for name in named.filter_map(|name| name.trim().parse::<HeaderName>().ok()) {
        passed.remove(name);
    }
    for name in HOP_BY_HOP {
        passed.remove(name);
    }
    passed
}

fn without_contexture_headers(mut headers: HeaderMap) -> HeaderMap {
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(HEADER_PREFIX))
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn what_is_of_one_connection_stays_there() {
        let came = headers(&[
            ("host", "localhost:8484"),
            ("connection", "close, X-Hop"),
            ("connection", "x-other-hop"),
            ("x-hop", "1"),
            ("x-other-hop", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("cookie", "a=b"),
            ("expect", "100-continue"),
            ("content-length", "5"),
            ("proxy-authorization", "Basic eA=="),
            ("x-contexture-key", "ctx_secret"),
            ("x-contexture-conversation", "c"),
            ("x-stainless-lang", "python"),
            ("anthropic-beta", "one"),
            ("anthropic-beta", "two"),
            ("x-unknown", "é"),
        ]);
        let gone = forwarded_request_headers(&came);
        let left = headers(&[
            ("x-stainless-lang", "python"),
            ("anthropic-beta", "one"),
            ("anthropic-beta", "two"),
            ("x-unknown", "é"),
        ]);
        assert_eq!(gone, left);
    }

    #[test]
    fn only_offers_of_a_websocket_are_websockets() {
        for (value, expected) in [
            ("websocket", true),
            ("h2c, WebSocket", true),
            ("h2c", false),
            ("websockets", false),
        ] {
            let came = headers(&[("upgrade", value)]);
            assert_eq!(is_websocket_upgrade(&came), expected, "{value}");
        }
        assert!(!is_websocket_upgrade(&headers(&[])));
    }

    #[test]
    fn an_answer_keeps_its_length_and_loses_cookies() {
        let came = headers(&[
            ("content-length", "5"),
            ("content-encoding", "gzip"),
            ("set-cookie", "__cf_bm=1"),
            ("connection", "keep-alive"),
            ("x-contexture-conversation", "another's"),
            ("request-id", "req_1"),
        ]);
        let left = headers(&[
            ("content-length", "5"),
            ("content-encoding", "gzip"),
            ("request-id", "req_1"),
        ]);
        assert_eq!(forwarded_response_headers(&came), left);
    }
}
