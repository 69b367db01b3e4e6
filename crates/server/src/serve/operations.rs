//! Endpoints about the server itself: health, metrics and the API's description.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use contexture_api::ProblemDocument;

use crate::api::{OpenRefusals, ReadRefusals};
use crate::http::extractors::{AdminAccess, Json};
use crate::problem::{Code, Problem};
use crate::state::App;

/// Whether the server and its database answer.
#[utoipa::path(
    get, path = "/health", tag = "server", security(()),
    responses(
        (status = 200, description = "Both answer", body = Health),
        (status = 503, description = "The database does not", body = ProblemDocument, content_type = "application/problem+json"),
        OpenRefusals
    )
)]
pub(super) async fn check_health(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if let Err(error) = app.engine().store().check_connection().await {
        tracing::error!(%error, "the database does not answer");
        return Err(Problem::custom(
            "database",
            StatusCode::SERVICE_UNAVAILABLE,
            "the database does not answer; the log says how",
        ));
    }
    Ok(Json(Health::OK))
}

/// Whether the server answers. Its database is not asked, so that a server is not restarted because a database is away.
#[utoipa::path(
    get, path = "/health/live", tag = "server", security(()),
    responses((status = 200, description = "It does", body = Health), OpenRefusals)
)]
pub(super) async fn check_liveness() -> Json<Health> {
    Json(Health::OK)
}

/// Whether requests can be answered: the same as `/health`.
#[utoipa::path(
    get, path = "/health/ready", tag = "server", security(()),
    responses(
        (status = 200, description = "The server and its database answer", body = Health),
        (status = 503, description = "The database does not", body = ProblemDocument, content_type = "application/problem+json"),
        OpenRefusals
    )
)]
pub(super) async fn check_readiness(app: State<App>) -> Result<Json<Health>, Problem> {
    check_health(app).await
}

/// The answer of a healthy server.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct Health {
    /// Status of the server, always `ok`.
    status: &'static str,
    /// Version of the server program.
    version: &'static str,
}

impl Health {
    const OK: Self = Self {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
    };
}

/// The figures, in Prometheus' text format.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, description = "The figures", body = String, content_type = "text/plain"), ReadRefusals)
)]
pub(super) async fn show_metrics(
    _: AdminAccess,
    State(app): State<App>,
) -> Result<Response, Problem> {
    let Some(figures) = app.metrics_handle() else {
        return Err(Problem::new(
            Code::NotFound,
            "this program keeps its figures elsewhere",
        ));
    };
    set_load_figures(&app);
    let mut response = figures.render().into_response();
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    Ok(response)
}

/// Sets the figures that are counted elsewhere: what reads of the store waited for, and what reads whole conversations.
fn set_load_figures(app: &App) {
    let load = app.engine().store().read_load();
    metrics::counter!("contexture_store_lookups_waited_total").absolute(load.point_waits);
    metrics::counter!("contexture_store_paths_waited_total").absolute(load.path_waits);
    metrics::counter!("contexture_store_scans_waited_total").absolute(load.scan_waits);
    metrics::counter!("contexture_store_interrupted_total").absolute(load.interrupted);
    metrics::gauge!("contexture_store_scans_running").set(load.running_scans as f64);
    let stored = app.stored_work();
    metrics::gauge!("contexture_stored_work_running").set(stored.held_permits() as f64);
    metrics::counter!("contexture_stored_work_waited_total").absolute(stored.times_waited());
}
