//! Proxy authentication: who calls, and with whose key the provider is called.
//!
//! Without keys of this server (loopback only) the client's credentials go to the configured host, and nowhere else. With
//! keys, ours is read from `x-contexture-key` or from where the provider's clients put theirs. A key that the configuration
//! has for the upstream replaces all others. None is stored or logged, and none of ours leaves, however it is spelled.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use contexture::Format;
use contexture::models_http::ApiKey;

use crate::access::Principal;
use crate::access::key_search::holds_key;
use crate::access::origins::CallerKey;
use crate::access::presented_key::{
    KEY_HEADER, key_in_value, values_of_parameter, without_parameter,
};
use crate::config::{AccessScope, UpstreamFormat};
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
    let (principal, key) = if app.api_keys().is_key_required() {
        (authenticate_by_key(app, headers, out)?, CallerKey::Shown)
    } else {
        let local = app.api_keys().authorize_without_key()?;
        (local.clone(), CallerKey::Missing)
    };
    app.origins().check_request(headers, key)?;
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
    let keys = app.api_keys();
    let principal_of = |value: &HeaderValue| keys.principal_for_key(key_in_value(value)?).cloned();
    let mut principal_in_place = None;
    // All places are searched even after a hit: a second copy of our key must not reach the provider.
    for slot in key_headers() {
        let values = out.headers.get_all(slot);
        let found = values.iter().find_map(principal_of);
        principal_in_place = principal_in_place.or(found);
        // Also in spellings in which nobody may call, `Basic` say.
        if values.iter().any(|value| holds_key(keys, value.as_bytes())) {
            out.headers.remove(slot);
        }
    }
    if let Some(query) = out.query.take() {
        let values: Vec<String> = values_of_parameter(&query, KEY_PARAMETER).collect();
        let found = values
            .iter()
            .find_map(|key| keys.principal_for_key(key.trim()));
        principal_in_place = principal_in_place.or(found.cloned());
        out.query = Some(
            match values.iter().any(|key| holds_key(keys, key.as_bytes())) {
                true => without_parameter(&query, KEY_PARAMETER),
                false => query,
            },
        );
    }
    // Our own header decides, even if it is wrong: what is in a provider's place may be the provider's key.
    if let Some(ours) = headers.get(KEY_HEADER) {
        return principal_of(ours)
            .ok_or_else(|| refused("this key is not known here; `contexture keys new` makes one"));
    }
    principal_in_place.ok_or_else(|| {
        refused("a key of this server is needed: as `x-contexture-key`, or where the provider's key would stand")
    })
}

/// Refuses a request that would carry a key of this server to its provider, in a header, the path or the query. To be called
/// when the head is complete: nothing may be added to it afterwards.
///
/// # Errors
/// It holds one outside of the places from which ours are taken.
pub(crate) fn check_no_key_leaves(
    app: &App,
    path: &str,
    out: &OutgoingHead,
) -> Result<(), ProxyRefusal> {
    let keys = app.api_keys();
    let refused = |place: &str| {
        let message = format!(
            "{place} holds a key of this server, which the provider would get; send it as `x-contexture-key`"
        );
        Err(ProxyRefusal::new(
            StatusCode::BAD_REQUEST,
            "key_would_leave",
            message,
        ))
    };
    let query = out.query.as_deref().unwrap_or_default();
    if holds_key(keys, path.as_bytes()) || holds_key(keys, query.as_bytes()) {
        return refused("the address");
    }
    for (name, value) in &out.headers {
        // Only the key of the upstream is marked so. It may be one of ours where another such server is the upstream.
        if !value.is_sensitive() && holds_key(keys, value.as_bytes()) {
            return refused(&format!("the header {name}"));
        }
    }
    Ok(())
}

fn remove_credentials(out: &mut OutgoingHead) {
    for slot in key_headers() {
        out.headers.remove(slot);
    }
    let query = out.query.as_deref();
    out.query = query.map(|query| without_parameter(query, KEY_PARAMETER));
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

/// Puts the key of an upstream where its provider looks for it.
///
/// # Errors
/// It fits in no header.
pub(crate) fn insert_upstream_key(
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
