//! Where callers put a key of this server: the one rule for the API, MCP and the proxy.
//!
//! Not here: whose key it is (`api_keys`), and that it goes no further (`key_search`).

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

/// The header that carries a key of this server, and nothing else.
pub(crate) const KEY_HEADER: HeaderName = HeaderName::from_static("x-contexture-key");

/// The scheme behind which a header may carry a key (RFC 6750).
const BEARER: &str = "bearer";

/// Returns the key in a header's value: all of it, or what follows the scheme `Bearer`.
pub(crate) fn key_in_value(value: &HeaderValue) -> Option<&str> {
    let value = value.to_str().ok()?.trim();
    let is_space = |c: char| c.is_ascii_whitespace();
    match value.split_once(is_space) {
        // Schemes have no case (RFC 9110, 11.1), and one or more spaces follow them.
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(BEARER) => Some(key.trim()),
        _ => Some(value),
    }
}

/// Returns the values of all parameters of this name in a query, both decoded.
pub(crate) fn values_of_parameter<'q>(
    query: &'q str,
    name: &'q str,
) -> impl Iterator<Item = String> + 'q {
    pairs_of_query(query)
        .filter(move |(_, key, _)| key == name)
        .map(|(_, _, value)| value.into_owned())
}

/// Returns a query without all parameters of this name, however it is spelled.
pub(crate) fn without_parameter(query: &str, name: &str) -> String {
    let left: Vec<&str> = pairs_of_query(query)
        .filter(|(_, key, _)| key != name)
        .map(|(pair, ..)| pair)
        .collect();
    left.join("&")
}

/// Returns each pair of a query as it came, and its name and value decoded.
fn pairs_of_query(query: &str) -> impl Iterator<Item = (&str, String, Cow<'_, str>)> {
    query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text| percent_decode_str(text).decode_utf8_lossy();
        (pair, decode(name).to_ascii_lowercase(), decode(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_every_spelling_of_its_scheme() {
        for value in [
            "ctx_1",
            " ctx_1 ",
            "Bearer ctx_1",
            "bearer ctx_1",
            "BEARER  ctx_1",
            "BeArEr\tctx_1",
        ] {
            let header = HeaderValue::from_str(value).unwrap();
            assert_eq!(key_in_value(&header), Some("ctx_1"), "{value:?}");
        }
        let basic = HeaderValue::from_static("Basic ctx_1");
        assert_eq!(key_in_value(&basic), Some("Basic ctx_1"));
    }

    #[test]
    fn a_key_in_the_query_is_found_and_taken_out() {
        let found = |query| values_of_parameter(query, "key").collect::<Vec<_>>();
        for (query, key, rest) in [
            ("alt=sse&key=ctx_1&x=y", "ctx_1", "alt=sse&x=y"),
            ("%6bey=ctx_1&alt=sse", "ctx_1", "alt=sse"),
            ("KEY=ctx%5F1", "ctx_1", ""),
            ("key", "", ""),
        ] {
            assert_eq!(found(query), [key], "{query}");
            assert_eq!(without_parameter(query, "key"), rest, "{query}");
        }
        assert_eq!(found("monkey=1"), [""; 0]);
        assert_eq!(without_parameter("monkey=1", "key"), "monkey=1");
    }
}
