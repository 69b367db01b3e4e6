//! Metrics for Prometheus: the recorder of the process, and counts and durations of HTTP requests.
//!
//! Below everything else in the crate, so that state and middleware can both use it. The endpoint is `serve::operations`.

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::Instant;

/// Interval between upkeeps: until then samples of histograms are kept one by one.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Returns the recorder of the process, installed on the first call; `None` if the program has installed another.
pub(crate) fn install_recorder() -> Option<PrometheusHandle> {
    // A process has one recorder, but tests start many servers in one process.
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    RECORDER
        .get_or_init(|| PrometheusBuilder::new().install_recorder().ok())
        .clone()
}

/// Aggregates samples periodically. Without it memory would grow as long as nobody scrapes the metrics.
pub(crate) async fn run_upkeep_loop(figures: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        figures.run_upkeep();
    }
}

/// The methods that have a label of their own.
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

/// What a proxied request is counted as, which has no route of its own: an extension of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxiedAs(pub(crate) &'static str);

/// Counts and times a request by its route.
pub(crate) async fn measure_request(request: Request, next: Next) -> Response {
    // Never the path or an unknown method: labels that callers can make up would grow the metrics without bound.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map(|route| route.as_str().to_owned());
    let method = METHODS.iter().find(|known| *known == request.method());
    let method = method.map_or("other", Method::as_str);
    let start = Instant::now();
    let response = next.run(request).await;
    let (status, took) = (response.status(), start.elapsed());
    let proxied = response.extensions().get::<ProxiedAs>();
    let other = || proxied.map_or("other", |proxied| proxied.0).to_owned();
    let route = route.unwrap_or_else(other);
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
