//! All routes: the server's own, the API's, and whatever else goes to providers.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::documents::{DeltaDocument, EventDocument, ProblemDocument};
use crate::problem::{Code, Problem};
use crate::{accept, api, audit, auth, extract, framing, limits, mcp, metrics, panics, proxy};

/// The API's description.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Contexture",
        description = "Conversations that are kept, resolved and compiled.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(DeltaDocument, EventDocument, ProblemDocument)),
    modifiers(&SecuritySchemes),
    security((), ("key" = []), ("bearer" = [])),
)]
struct Description;

struct SecuritySchemes;

impl utoipa::Modify for SecuritySchemes {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme,
        };
        let components = openapi.components.get_or_insert_default();
        let key =
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(auth::KEY_HEADER.as_str())));
        components.add_security_scheme("key", key);
        components.add_security_scheme(
            "bearer",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
    }
}

/// The description of the API: OpenAPI 3.1, as JSON.
#[must_use]
pub fn openapi() -> String {
    let (_, description) = documented_router().split_for_parts();
    description.to_pretty_json().unwrap_or_default()
}

fn documented_router() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .merge(public_router())
        .merge(authenticated_router())
        .merge(api::long_router())
}

/// What anybody may ask.
fn public_router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(describe))
}

/// What a caller is needed for.
fn authenticated_router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(metrics::show))
        .merge(api::router())
}

/// Every route there is.
pub(crate) fn router(app: &App) -> Router {
    let body_bytes = app.config().server.limits.body_bytes;
    let (open, _) = public_router().split_for_parts();
    let (known, _) = authenticated_router().split_for_parts();
    let (long, _) = api::long_router().split_for_parts();
    let own: Router<App> = known
        .route_layer(from_fn_with_state(app.clone(), api::run_idempotently))
        .route_layer(from_fn(accept::check_accept_header))
        .merge(mcp::router(app))
        .route_layer(from_fn_with_state(app.clone(), limits::with_timeout))
        .merge(long)
        .route_layer(from_fn_with_state(app.clone(), auth::authenticate))
        .merge(open)
        .method_not_allowed_fallback(other_method)
        .route_layer(DefaultBodyLimit::max(body_bytes));
    own.fallback_service(proxy::router(app))
        .layer(from_fn(panics::respond_to_panic))
        .layer(from_fn_with_state(app.clone(), limits::with_idle_timeout))
        .layer(from_fn(audit::log_request))
        .layer(from_fn(framing::reject_ambiguous_framing))
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

/// Whether the server and its database answer.
#[utoipa::path(
    get, path = "/health", tag = "server", security(()),
    responses(
        (status = 200, description = "Both answer", body = Health),
        (status = 503, description = "The database does not", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn health(State(app): State<App>) -> Result<extract::Json<Health>, Problem> {
    let owner = &app.config().server.owner;
    let list = contexture::store::ListConversations {
        limit: Some(1),
        ..Default::default()
    };
    if let Err(error) = app.engine().list_conversations(owner, list).await {
        tracing::error!(%error, "the database does not answer");
        let code = Code::Custom("database", StatusCode::SERVICE_UNAVAILABLE);
        return Err(Problem::new(
            code,
            "the database does not answer; the log says how",
        ));
    }
    Ok(extract::Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// That all is well.
#[derive(serde::Serialize, utoipa::ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
    /// The server's version.
    version: &'static str,
}

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "server", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value))
)]
async fn describe() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], openapi())
}
