//! Figures for Prometheus: those of the engine, and how often and how fast requests are answered.

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::Instant;

use crate::api::ReadRefusals;
use crate::app::App;
use crate::extract::AdminAccess;
use crate::problem::{Code, Problem};

/// The figures, in Prometheus' text format.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, description = "The figures", body = String, content_type = "text/plain"), ReadRefusals)
)]
pub(crate) async fn show(_: AdminAccess, State(app): State<App>) -> Result<Response, Problem> {
    let Some(figures) = app.metrics_handle() else {
        return Err(Problem::new(
            Code::NotFound,
            "this program keeps its figures elsewhere",
        ));
    };
    let mut response = figures.render().into_response();
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    Ok(response)
}

/// The methods that are told apart.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

/// Counts and times a request by its route, never by its path: ids are no labels, nor are words that anybody makes up.
pub(crate) async fn measure_request(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "other".to_owned(), |route| route.as_str().to_owned());
    let method = METHODS.iter().find(|known| *known == request.method());
    let method = method.map_or("other", Method::as_str);
    let start = Instant::now();
    let response = next.run(request).await;
    let (status, took) = (response.status(), start.elapsed());
    tracing::debug!(route, method, status = status.as_u16(), ?took, "answered");
    let labels = [
        ("route", route),
        ("method", method.to_owned()),
        ("status", status.as_str().to_owned()),
    ];
    metrics::counter!("contexture_http_requests_total", &labels).increment(1);
    metrics::histogram!("contexture_http_request_seconds", &labels).record(took.as_secs_f64());
    response
}
