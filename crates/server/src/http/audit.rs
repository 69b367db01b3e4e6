//! Who did what: a line of the log for each request that may change something, and for each that was refused its caller.
//!
//! Lines are `tracing` events of the target [`TARGET`], at the level INFO: the key's name, the owner, the method, the route,
//! the conversation, the status. Never in them: keys, contents, paths of providers, queries.
//!
//! Not here: how events reach a file, which is the program's.

use axum::extract::{FromRequestParts as _, MatchedPath, RawPathParams, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use crate::access::Principal;

/// What the lines are called.
const TARGET: &str = "audit";

/// A route that is no own one: a provider's.
const ELSEWHERE: &str = "provider";

/// The header that says which conversation a provider's answer was stored in.
const CONVERSATION: &str = "x-contexture-conversation";

/// Tells of a request once it is answered. Who called is known by then: whoever found out has left it in the answer.
pub(crate) async fn log_request(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let (mut parts, body) = request.into_parts();
    let route = parts.extensions.get::<MatchedPath>().cloned();
    let named = conversation_in_path(
        RawPathParams::from_request_parts(&mut parts, &())
            .await
            .ok(),
    );
    let response = next.run(Request::from_parts(parts, body)).await;
    let status = response.status();
    let changes = !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    let turned_away = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let principal = response.extensions().get::<Principal>();
    // A provider may refuse its own key; that is its answer.
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

/// The conversation in the path.
fn conversation_in_path(parameters: Option<RawPathParams>) -> Option<String> {
    let parameters = parameters?;
    let mut parameters = parameters.iter();
    let conversation = parameters.find(|(name, _)| *name == "conversation");
    conversation.map(|(_, id)| id.to_owned())
}
