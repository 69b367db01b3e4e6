//! What a server says of itself: a line an event on standard error, and, where that was built in, spans and metrics to
//! a collector.
//!
//! No message, argument, key or address of a provider is among it; see `docs/observability.md` and `docs/operations.md`.

use std::io;

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use crate::output::failure::{Failure, Outcome};

/// The variable that says where spans and metrics go.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// How it is said, and how much of it.
#[derive(Clone, Debug, Args)]
pub(crate) struct LogOptions {
    /// How events are written to standard error
    #[arg(
        long,
        env = "CONTEXTURE_LOG_FORMAT",
        value_enum,
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub(crate) log_format: LogFormat,
    /// Which events: off, error, warn, info, debug or trace, also by crate: `info,contexture_server=debug`
    #[arg(
        long,
        env = "CONTEXTURE_LOG",
        default_value = "info",
        value_name = "LEVEL"
    )]
    log: Targets,
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// To be kept until the program ends: what is left is sent then.
#[derive(Debug)]
pub(crate) struct LogGuard {
    #[cfg(feature = "otlp")]
    _guard: Option<contexture::otlp::OtlpGuard>,
}

impl LogOptions {
    /// Begins to say it.
    ///
    /// # Errors
    /// The collector's variables say nothing possible.
    pub(crate) fn start_logging(&self) -> Outcome<LogGuard> {
        // Where standard error is closed there is nobody to tell that it is.
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .log_internal_errors(false);
        let lines = match self.log_format {
            // Logs end up in files and collectors, where colour codes are noise.
            LogFormat::Text => lines.with_ansi(false).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        contexture_server::log_panics();
        install_with_collector(Registry::default().with(lines.with_filter(self.log.clone())))
    }
}

#[cfg(feature = "otlp")]
fn install_with_collector<S>(said: S) -> Outcome<LogGuard>
where
    S: tracing::Subscriber
        + for<'a> tracing_subscriber::registry::LookupSpan<'a>
        + Send
        + Sync
        + 'static,
{
    use contexture::otlp::{OtlpOptions, build_otlp};
    // Built in is not switched on: without an address nothing is sent anywhere.
    if !is_collector_configured() {
        return install_subscriber(said).map(|()| LogGuard { _guard: None });
    }
    let wrong = |error: String| Failure::bad_input("collector", error);
    // What the environment says goes before our own name.
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
    let options = OtlpOptions {
        service: (!named).then(|| "contexture".to_owned()),
        ..OtlpOptions::default()
    };
    let otlp = build_otlp(&options).map_err(|error| wrong(error.to_string()))?;
    metrics::set_global_recorder(otlp.recorder).map_err(|error| wrong(error.to_string()))?;
    install_subscriber(said.with(otlp.layer))?;
    Ok(LogGuard {
        _guard: Some(otlp.guard),
    })
}

#[cfg(not(feature = "otlp"))]
fn install_with_collector<S: tracing::Subscriber + Send + Sync + 'static>(
    said: S,
) -> Outcome<LogGuard> {
    install_subscriber(said)?;
    if is_collector_configured() {
        tracing::warn!("{COLLECTOR} is set, but this program was built without the feature `otlp`");
    }
    Ok(LogGuard {})
}

fn is_collector_configured() -> bool {
    std::env::var_os(COLLECTOR).is_some_and(|address| !address.is_empty())
}

fn install_subscriber(said: impl tracing::Subscriber + Send + Sync + 'static) -> Outcome<()> {
    tracing::subscriber::set_global_default(said)
        .map_err(|error| Failure::new(crate::output::exit::Exit::Fault, "logs", error.to_string()))
}
