//! Options of the exporter, and its errors.

use std::time::Duration;

/// Where to send spans and metrics. What is not given here is as the standard environment variables say:
/// `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, their forms for traces and
/// metrics, `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_BSP_*`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OtlpOptions {
    /// The collector's base address, to which `/v1/traces` and `/v1/metrics` are added. Without one, here or in the
    /// environment: `http://localhost:4318`.
    pub endpoint: Option<String>,
    /// Headers of every request, such as a key's. They are not shown.
    pub headers: Vec<(String, String)>,
    /// The program's name.
    pub service: Option<String>,
    /// How often metrics are sent. Without it: every minute.
    pub export_interval: Option<Duration>,
}

impl std::fmt::Debug for OtlpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Names only: values are keys.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("OtlpOptions")
            .field("endpoint", &self.endpoint)
            .field("headers", &headers)
            .field("service", &self.service)
            .field("every", &self.export_interval)
            .finish()
    }
}

impl OtlpOptions {
    /// The address for one signal, if a base is given.
    pub(crate) fn signal_endpoint(&self, signal: &str) -> Option<String> {
        let base = self.endpoint.as_ref()?;
        Some(format!("{}/v1/{signal}", base.trim_end_matches('/')))
    }
}

/// What is wrong with the configuration, or with the collector when it is waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// An exporter that cannot be set up.
    #[error("no exporter: {reason}; give an endpoint like http://localhost:4318")]
    BadConfiguration {
        /// What is wrong.
        reason: String,
    },
    /// What was told could not be sent.
    #[error("what was told could not be sent: {reason}")]
    NotSent {
        /// Why it was not sent.
        reason: String,
    },
}
