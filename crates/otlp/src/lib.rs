//! Spans and metrics, sent to an OpenTelemetry collector by OTLP over HTTP.
//!
//! [`build_otlp`] gives a layer for the program's `tracing` subscriber, a recorder for `metrics`, and a guard. Both send from
//! threads of their own: a collector that is slow, away or wrong costs what was to be sent and nothing else.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let otlp = contexture_otlp::build_otlp(&contexture_otlp::OtlpOptions::default())?;
//! tracing::subscriber::set_global_default(tracing_subscriber::registry().with(otlp.layer))?;
//! metrics::set_global_recorder(otlp.recorder)?;
//! let _guard = otlp.guard; // kept until the program ends
//! # Ok(())
//! # }
//! ```
//!
//! Not here: what is told (`contexture-telemetry`); logs; OTLP over gRPC.

mod exporter;
mod http;
mod list_fields;
mod options;
mod recorder;

pub use exporter::{Otlp, OtlpGuard, build_otlp};
pub use options::{OtlpError, OtlpOptions};
pub use recorder::OtlpRecorder;
