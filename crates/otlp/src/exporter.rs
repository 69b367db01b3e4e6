//! The exporter: a layer, a recorder, and the guard that sends what is left.

use std::collections::HashMap;

use contexture_telemetry::SCHEMA_URL;
use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::http::build_http_client;
use crate::list_fields::ListFields;
use crate::options::OtlpError;
use crate::options::OtlpOptions;
use crate::recorder::OtlpRecorder;

/// The name of tracer and meter.
const SCOPE: &str = "contexture";

/// Crates that send, whose own spans would be exported again and again.
const SENDING: [&str; 7] = [
    "h2",
    "hyper",
    "hyper_util",
    "opentelemetry",
    "reqwest",
    "rustls",
    "tower",
];

/// An exporter of spans and metrics.
pub struct Otlp<S> {
    /// For the program's `tracing` subscriber: spans of level info and above, and those of this library of level debug;
    /// no events.
    pub layer: Box<dyn Layer<S> + Send + Sync>,
    /// Recorder for the crate `metrics`.
    pub recorder: OtlpRecorder,
    /// To be kept until the program ends.
    pub guard: OtlpGuard,
}

impl<S> std::fmt::Debug for Otlp<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Otlp").finish_non_exhaustive()
    }
}

/// Sends what is left when it is dropped, and ends the sending threads.
#[derive(Debug)]
pub struct OtlpGuard {
    tracer: SdkTracerProvider,
    meter: SdkMeterProvider,
}

impl OtlpGuard {
    /// Sends what has been told so far, and waits for it: on this thread, up to some seconds a signal. Spans that are
    /// not over are not sent.
    ///
    /// # Errors
    /// [`OtlpError::NotSent`].
    pub fn force_flush(&self) -> Result<(), OtlpError> {
        let spans = map_sdk_error(self.tracer.force_flush());
        let figures = map_sdk_error(self.meter.force_flush());
        // Both are flushed even if the first fails; the first error is reported.
        spans.and(figures)
    }
}

impl Drop for OtlpGuard {
    fn drop(&mut self) {
        for ended in [self.tracer.shutdown(), self.meter.shutdown()] {
            if let Err(error) = map_sdk_error(ended) {
                // The collector is gone or slow; the program is ending and can do nothing about it.
                tracing::warn!(%error, "the last spans and metrics are lost");
            }
        }
    }
}

fn map_sdk_error(result: OTelSdkResult) -> Result<(), OtlpError> {
    result.map_err(|error| OtlpError::NotSent {
        reason: error.to_string(),
    })
}

/// Builds what sends spans and metrics to a collector. Nothing is installed.
///
/// # Errors
/// [`OtlpError::BadConfiguration`]. Whether there is a collector is not looked at.
pub fn build_otlp<S>(options: &OtlpOptions) -> Result<Otlp<S>, OtlpError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let bad = |reason: String| OtlpError::BadConfiguration { reason };
    let client = build_http_client()?;
    let headers: HashMap<String, String> = options.headers.iter().cloned().collect();
    let mut spans = SpanExporter::builder()
        .with_http()
        .with_http_client(client.clone())
        .with_headers(headers.clone());
    // An address is set only if one is given, so that the standard environment variables still apply.
    if let Some(address) = options.signal_endpoint("traces") {
        spans = spans.with_endpoint(address);
    }
    let spans = spans.build().map_err(|error| bad(error.to_string()))?;
    let mut figures = MetricExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_headers(headers);
    if let Some(address) = options.signal_endpoint("metrics") {
        figures = figures.with_endpoint(address);
    }
    let figures = figures.build().map_err(|error| bad(error.to_string()))?;

    // Attributes of the environment are read by the builder; the name given here wins over them.
    let mut resource = Resource::builder();
    if let Some(service) = &options.service {
        resource = resource.with_service_name(service.clone());
    }
    let resource = resource.build();
    let tracer = SdkTracerProvider::builder()
        .with_resource(resource.clone())
        // In batches and on a thread of its own: ending a span must not wait for the network.
        .with_batch_exporter(ListFields(spans))
        .build();
    let mut reader = PeriodicReader::builder(figures);
    if let Some(every) = options.export_interval {
        reader = reader.with_interval(every);
    }
    let meter = SdkMeterProvider::builder()
        .with_resource(resource)
        .with_reader(reader.build())
        .build();
    // Names of spans and metrics follow one version of the conventions.
    let scope = InstrumentationScope::builder(SCOPE)
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(SCHEMA_URL)
        .build();
    let layer = tracing_opentelemetry::layer()
        // Source locations and threads would multiply the size of each span and tell nothing about agents.
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_tracer(tracer.tracer_with_scope(scope.clone()))
        .with_filter(filter_fn(should_export));
    Ok(Otlp {
        layer: Box::new(layer),
        recorder: OtlpRecorder::from_meter(meter.meter_with_scope(scope)),
        guard: OtlpGuard { tracer, meter },
    })
}

/// Whether a span is sent.
fn should_export(what: &Metadata<'_>) -> bool {
    let from = what.target().split("::").next().unwrap_or_default();
    // Spans of this library matter down to debug; those of other crates would drown them.
    let most = match from.starts_with("contexture") {
        true => LevelFilter::DEBUG,
        false => LevelFilter::INFO,
    };
    // Exporting a span makes HTTP requests, whose spans would be exported in turn.
    let sending = SENDING.contains(&from) || from.starts_with("opentelemetry");
    what.is_span() && !sending && *what.level() <= most
}
