//! Figures for Prometheus: those of the engine, and how often and how fast requests are answered.

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::Instant;

/// Samples are kept one by one for so long before they are summed up.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The process's recorder, installed when first asked for; `None` if the program installed another.
pub(crate) fn install_recorder() -> Option<PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    RECORDER
        .get_or_init(|| PrometheusBuilder::new().install_recorder().ok())
        .clone()
}

/// Sums up samples again and again, whether anybody asks for the figures or not.
pub(crate) async fn run_upkeep_loop(figures: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        figures.run_upkeep();
    }
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
