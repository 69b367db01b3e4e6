//! All routes and the middleware around them: the server's own, the API's, and the proxy for everything else.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::{
    accept, audit, authenticate, cross_origin, heavy, limits, panics, request_smuggling,
};
use crate::problem::{Code, Problem};
use crate::serve::api_description::{self, Description};
use crate::serve::operations;
use crate::state::App;
use crate::{api, inspector, mcp, metrics, proxy};

/// Returns the routes with their descriptions.
pub(super) fn documented_router() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .merge(public_router())
        .merge(authenticated_router())
        .merge(api::long_router())
}

/// Returns the routes that need no key.
fn public_router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operations::check_health))
        .routes(routes!(operations::check_liveness))
        .routes(routes!(operations::check_readiness))
        .routes(routes!(api_description::describe_api))
}

/// Returns the routes that need a caller.
fn authenticated_router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operations::show_metrics))
        .merge(api::router())
}

/// Builds the router of the server.
pub(crate) fn router(app: &App) -> Router {
    let body_bytes = app.config().server.limits.body_bytes;
    let (open, _) = public_router().split_for_parts();
    let (known, _) = authenticated_router().split_for_parts();
    let (long, _) = api::long_router().split_for_parts();
    // Each layer wraps those above it. Idempotency is innermost, so that only requests that pass all checks claim a key;
    // long routes join after the timeout, so that an import may take as long as it needs.
    let known: Router<App> = known
        .route_layer(from_fn_with_state(app.clone(), api::run_idempotently))
        .route_layer(from_fn(accept::check_accept_header));
    let bounded = |routes: Router<App>| {
        routes
            .route_layer(from_fn_with_state(app.clone(), heavy::run_heavy_requests))
            .route_layer(from_fn_with_state(app.clone(), limits::with_timeout))
            .route_layer(from_fn_with_state(app.clone(), heavy::read_body_first))
    };
    // Pages read what the API answers to their reader: the same handlers, behind the same checks of scopes.
    let for_pages = bounded(known.clone()).with_state(app.clone());
    let own: Router<App> = bounded(known.merge(mcp::router(app)))
        .merge(long)
        .route_layer(from_fn_with_state(app.clone(), authenticate::authenticate))
        .merge(open)
        .merge(inspector::router(app, for_pages))
        .method_not_allowed_fallback(other_method)
        .route_layer(DefaultBodyLimit::max(body_bytes));
    // These wrap the proxy too. Metrics are outermost and see every answer; ambiguous framing is refused before
    // anything else reads the request.
    own.fallback_service(proxy::router(app))
        .layer(from_fn(panics::respond_to_panic))
        .layer(from_fn_with_state(app.clone(), limits::with_idle_timeout))
        .layer(from_fn_with_state(
            app.clone(),
            cross_origin::answer_browsers,
        ))
        .layer(from_fn(audit::log_request))
        .layer(from_fn(request_smuggling::reject_ambiguous_framing))
        .layer(from_fn_with_state(app.clone(), limits::check_head_size))
        .layer(from_fn(metrics::measure_request))
        .with_state(app.clone())
}

/// `OPTIONS` lists the methods, which the router adds; other methods are not allowed.
async fn other_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(
        Code::MethodNotAllowed,
        format!("{method} is not possible here; `allow` lists what is"),
    )
    .into_response()
}
