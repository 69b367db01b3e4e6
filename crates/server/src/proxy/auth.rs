//! Proxy authentication: who calls, and with whose key the provider is called.
//!
//! Without keys of this server (loopback only) the client's credentials go to the configured host, and nowhere else. With
//! keys, ours is read from `x-contexture-key` or from where the provider's clients put theirs. A key that the configuration
//! has for the upstream replaces all others. None is stored or logged.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use contexture::Format;
use contexture::models_http::ApiKey;

use crate::access::Principal;
use crate::config::{AccessScope, UpstreamFormat};
use crate::http::authenticate::KEY_HEADER;
use crate::proxy::refusal::ProxyRefusal;
use crate::state::App;
use crate::state::upstreams::ConfiguredUpstream;

/// A header in which clients of some hosts put their keys, though no provider's own clients do.
const OTHER_KEY_HEADER: &str = "api-key";

/// The query parameter in which Gemini's clients may put theirs.
const KEY_PARAMETER: &str = "key";

/// A request's headers and query, as they go out.
#[derive(Debug)]
pub(crate) struct OutgoingHead {
    pub(crate) headers: HeaderMap,
    pub(crate) query: Option<String>,
}

/// Returns who calls. The outgoing head is left with the upstream's key, or the client's own, and never with ours.
///
/// # Errors
/// A key of ours is needed, or may not do this; the upstream has no key to replace ours by.
pub(crate) fn authorize_request(
    app: &App,
    upstream: &ConfiguredUpstream,
    headers: &HeaderMap,
    out: &mut OutgoingHead,
) -> Result<Principal, ProxyRefusal> {
    let principal = if app.api_keys().is_key_required() {
        authenticate_by_key(app, headers, out)?
    } else {
        app.api_keys().authorize_without_key(headers)?.clone()
    };
    principal.require_scope(AccessScope::Proxy)?;
    if let Some(key) = &upstream.key {
        // All of the client's, so that the provider cannot prefer one of them to the configured key.
        remove_credentials(out);
        insert_upstream_key(&mut out.headers, upstream.format, key)?;
    }
    Ok(principal)
}

/// Authenticates by `x-contexture-key`, or by one of our keys in a provider's place.
fn authenticate_by_key(
    app: &App,
    headers: &HeaderMap,
    out: &mut OutgoingHead,
) -> Result<Principal, ProxyRefusal> {
    let refused =
        |message: &str| ProxyRefusal::new(StatusCode::UNAUTHORIZED, "unauthenticated", message);
    let mut principal_in_place = None;
    // All places are searched even after a hit: a second copy of our key must not reach the provider.
    for slot in key_headers() {
        let mut values = out.headers.get_all(slot).iter();
        if let Some(principal) = values.find_map(|value| principal_of_header(app, value)) {
            principal_in_place.get_or_insert(principal.clone());
            out.headers.remove(slot);
        }
    }
    let key = out.query.as_deref().and_then(key_parameter);
    if let Some(principal) = key.and_then(|key| app.api_keys().principal_for_key(key)) {
        principal_in_place.get_or_insert(principal.clone());
        out.query = out.query.as_deref().map(without_key_parameter);
    }
    // Our own header decides, even if it is wrong: what is in a provider's place may be the provider's key.
    if let Some(ours) = headers.get(KEY_HEADER) {
        let principal = principal_of_header(app, ours).cloned();
        return principal
            .ok_or_else(|| refused("this key is not known here; `contexture keys new` makes one"));
    }
    principal_in_place.ok_or_else(|| {
        refused("a key of this server is needed: as `x-contexture-key`, or where the provider's key would stand")
    })
}

fn principal_of_header<'a>(app: &'a App, value: &HeaderValue) -> Option<&'a Principal> {
    let value = value.to_str().ok()?;
    app.api_keys()
        .principal_for_key(value.strip_prefix("Bearer ").unwrap_or(value).trim())
}

fn remove_credentials(out: &mut OutgoingHead) {
    for slot in key_headers() {
        out.headers.remove(slot);
    }
    out.query = out.query.as_deref().map(without_key_parameter);
}

/// Returns the headers in which providers' clients put their keys.
fn key_headers() -> impl Iterator<Item = &'static str> {
    let profiles = Format::PROVIDERS
        .into_iter()
        .filter_map(|format| format.spec().http());
    profiles
        .map(|profile| profile.key_header)
        .chain([OTHER_KEY_HEADER])
}

fn insert_upstream_key(
    headers: &mut HeaderMap,
    format: UpstreamFormat,
    key: &ApiKey,
) -> Result<(), ProxyRefusal> {
    let Some(profile) = format.http_profile() else {
        return Ok(());
    };
    let value = key.header_value(profile.key_prefix).map_err(|_| {
        let message = "the key that is configured for this upstream fits in no header";
        ProxyRefusal::new(StatusCode::BAD_GATEWAY, "bad_upstream_key", message)
    })?;
    headers.insert(profile.key_header, value);
    Ok(())
}

fn key_parameter(query: &str) -> Option<&str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(name, _)| *name == KEY_PARAMETER)
        .map(|(_, key)| key)
}

fn without_key_parameter(query: &str) -> String {
    // Every one of them goes, as a host may read any of several.
    let is_key = |pair: &str| pair == KEY_PARAMETER || pair.starts_with("key=");
    let left: Vec<&str> = query.split('&').filter(|pair| !is_key(pair)).collect();
    left.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_query_is_found_and_taken_out() {
        assert_eq!(key_parameter("alt=sse&key=ctx_1&x=y"), Some("ctx_1"));
        assert_eq!(
            without_key_parameter("alt=sse&key=ctx_1&x=y"),
            "alt=sse&x=y"
        );
        assert_eq!(key_parameter("monkey=1"), None);
        assert_eq!(without_key_parameter("monkey=1"), "monkey=1");
    }
}
