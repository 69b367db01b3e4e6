//! Authentication and rate limit of callers of the API and of MCP, before anything else is done.
//!
//! Not here: callers of the proxy, who put our key where a provider's key belongs (`proxy/auth.rs`).

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;

use crate::access::Principal;
use crate::access::origins::CallerKey;
use crate::access::presented_key::{KEY_HEADER, key_in_value};
use crate::problem::{Code, Problem};
use crate::state::App;

/// Authenticates a request of the API, and counts it against its owner's limits.
pub(crate) async fn authenticate(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let principal = identify_caller(&app, request.headers())?;
    let permit = app.rate_limiter().acquire_permit(&principal.owner)?;
    let span =
        tracing::debug_span!("request", owner = %principal.owner, key = principal.key.as_deref());
    // For extractors on the way in, and in the answer for the audit log, which runs outside of this layer.
    request.extensions_mut().insert(principal.clone());
    let mut response = permit.attach_to_response(next.run(request).instrument(span).await);
    response.extensions_mut().insert(principal);
    Ok(response)
}

fn identify_caller(app: &App, headers: &HeaderMap) -> Result<Principal, Problem> {
    let keys = app.api_keys();
    // Without configured keys a client may still send one, for a provider say: it is ignored.
    let key = key_from_headers(headers).filter(|_| keys.is_key_required());
    let Some(key) = key else {
        let caller = keys.authorize_without_key()?;
        app.origins().check_request(headers, CallerKey::Missing)?;
        return Ok(caller.clone());
    };
    let caller = keys.principal_for_key(key).ok_or_else(|| {
        Problem::new(
            Code::Unauthenticated,
            "this key is not known; `contexture keys new` makes one",
        )
    })?;
    app.origins().check_request(headers, CallerKey::Shown)?;
    Ok(caller.clone())
}

fn key_from_headers(headers: &HeaderMap) -> Option<&str> {
    let ours = headers.get(KEY_HEADER);
    key_in_value(ours.or_else(|| headers.get(AUTHORIZATION))?)
}
