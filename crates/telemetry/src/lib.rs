//! Names of traces and metrics of agents' work by OpenTelemetry's conventions, and the code that records them;
//! never content.
//!
//! The names are those of <https://github.com/open-telemetry/semantic-conventions-genai>, in the version of [`SCHEMA_URL`]; what
//! has none there is under `ctx.`. `otel.name` and `otel.kind` are fields that `tracing-opentelemetry` takes a span's name and kind
//! from. Spans go to [`tracing`], figures to [`metrics`]: without a subscriber and a recorder, which are the program's,
//! both cost next to nothing. [`METRICS`] lists the figures; `docs/observability.md` shows them and the spans.
//!
//! Not here: the spans of compiling and recording, which are the engine's; sending anything anywhere (`contexture-otlp`).

mod counters;
mod metric;
mod model_call;
mod operation;
mod span_fields;

pub use counters::{
    count_appended_items, count_client_retry, count_compaction, count_layer_failure, provider_of,
    record_cache_read, record_call_cost, record_compile,
};
pub use metric::{METRICS, Metric, MetricKind, describe_metrics};
pub use model_call::ModelCall;
pub use operation::Operation;
pub use span_fields::{
    LIST_FIELDS, SCHEMA_URL, channel_span, record_cost, record_error, record_finish_reason,
    record_usage, step_span,
};
