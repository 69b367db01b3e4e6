//! The proxy: requests of providers' own clients, forwarded to the provider and captured into conversations.
//!
//! A request finds its upstream by its path (`route`), its caller by the keys (`auth`), and goes out as it came (`forward`,
//! `headers`): the same bytes, and the answer's bytes back (`respond`), as they come. A call of a model is captured beside that
//! (`capture`): the request is stored in its conversation, the answer behind it, and the outcome of both is known by the
//! request's id (`state::request_outcomes`). Whatever fails there fails beside the request, never in it. Every exchange has a
//! row in the record of calls (`state::call_log`).
//!
//! A policy (`route::policy`) may send something else instead (`rewrite`): tools and secrets are taken out of the request's
//! text; a history is compiled once it is stored, where that costs less or something is to be said with it. If that fails,
//! the request goes as it came. Which requests are sent for one answer is in `send`, which also
//! looks for refusals inside streams (`stream_refusal`). A rewritten request may offer tools that the proxy answers itself (`server_tools`).
//! Behind an answer a model may be asked for a summary (`summary`), which a later request is compacted with.
//!
//! Not here: how a conversation is found (`contexture-engine`), connections to providers (`contexture-models-http`), the
//! state that outlives a request (`state`).

mod auth;
mod capture;
mod control_headers;
mod failure;
mod forward;
mod forwarded_usage;
mod headers;
mod refusal;
mod request_body;
mod respond;
mod rewrite;
mod route;
mod send;
mod server_tools;
mod signature;
mod stream_refusal;
mod summary;

use axum::Router;

use crate::state::App;

/// Returns the router of every path that is not the server's own.
pub(crate) fn router(app: &App) -> Router {
    Router::new()
        .fallback(forward::proxy_request)
        .with_state(app.clone())
}
