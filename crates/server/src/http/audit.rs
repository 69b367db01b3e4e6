//! The audit log: a line for each request that may change something, and for each whose caller was refused.
//!
//! Lines are `tracing` events of the target [`TARGET`], at the level INFO: the key's name, the owner, the method, the route,
//! the conversation, the status. Never in them: keys, contents, paths of providers, queries.
//!
//! Not here: how events reach a file, which is the program's.

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use crate::access::Principal;
use crate::http::extractors::find_conversation_name;

/// The `tracing` target of the lines, for filters.
const TARGET: &str = "audit";

/// The route of requests that are forwarded to a provider.
const ELSEWHERE: &str = "provider";

/// The header that says which conversation a provider's answer was stored in.
const CONVERSATION: &str = "x-contexture-conversation";

/// Logs a request once it is answered. The caller is known by then: authentication leaves the principal in the answer.
pub(crate) async fn log_request(mut request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let named = find_conversation_name(&mut request).await;
    let response = next.run(request).await;
    let status = response.status();
    let changes = !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    let turned_away = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let principal = response.extensions().get::<Principal>();
    // A refusal without a route of ours but with a principal is the provider's, of its own key.
    if changes || (turned_away && (principal.is_none() || route.is_some())) {
        let stored = response.headers().get(CONVERSATION);
        let stored = stored.and_then(|stored| stored.to_str().ok());
        tracing::info!(
            target: TARGET,
            key = principal.and_then(|principal| principal.key.as_deref()),
            owner = principal.map(|principal| principal.owner.as_str()),
            method = method.as_str(),
            route = route.as_ref().map_or(ELSEWHERE, MatchedPath::as_str),
            conversation = named.as_deref().or(stored),
            status = status.as_u16(),
            "answered"
        );
    }
    response
}
