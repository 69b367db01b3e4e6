//! Counters and one-off values: what is recorded once and has no duration.

use contexture_ir::Usage;
use contexture_wire::Format;
use metrics::{Label, counter, histogram};
use tracing::Span;

use crate::metric::{
    CACHE_PREDICTED, CACHE_READ, CALL_COST, COMPACTIONS, COMPILE_TOKENS, ITEMS, LAYER_FAILURES,
    OMITTED_TOKENS, RETRIES,
};
use crate::span_fields::record_cost;

pub(crate) fn model_labels(format: Format, model: &str) -> Vec<Label> {
    vec![
        Label::from_static_parts("gen_ai.provider.name", provider_of(format)),
        Label::new("gen_ai.request.model", model.to_owned()),
    ]
}

/// Records a compiled call: the tokens it holds, and those it would have held without limits.
pub fn record_compile(format: Format, model: &str, tokens: u64, omitted: u64) {
    let labels = model_labels(format, model);
    // Cloned labels: the macros take them by value.
    histogram!(COMPILE_TOKENS, labels.clone()).record(histogram_value(tokens));
    counter!(OMITTED_TOKENS, labels).increment(omitted);
}

/// Records what an answer's provider read from its cache, beside what was predicted. Nothing is recorded where
/// the provider reported nothing.
pub fn record_cache_read(format: Format, model: &str, usage: Option<&Usage>, predicted: u64) {
    // Prediction and report are counted for the same answers only, or their ratio would mean nothing.
    if let Some(read) = usage.and_then(|usage| usage.cache_read_tokens) {
        let labels = model_labels(format, model);
        counter!(CACHE_READ, labels.clone()).increment(read);
        counter!(CACHE_PREDICTED, labels).increment(predicted);
    }
}

/// Records what a call cost, in dollars, on its span, which has `ctx.usage.cost_dollars`, and as a metric.
pub fn record_call_cost(span: &Span, format: Format, model: &str, dollars: f64) {
    record_cost(span, dollars);
    histogram!(CALL_COST, model_labels(format, model)).record(dollars);
}

/// Counts items that were stored.
pub fn count_appended_items(items: usize) {
    counter!(ITEMS).increment(items as u64);
}

/// Counts a compaction that was stored.
pub fn count_compaction() {
    counter!(COMPACTIONS).increment(1);
}

/// Counts a hook of a layer that failed.
pub fn count_layer_failure(layer: &str, hook: &'static str, kind: &'static str) {
    let labels = vec![
        Label::new("ctx.layer.id", layer.to_owned()),
        Label::from_static_parts("ctx.layer.hook", hook),
        Label::from_static_parts("error.type", kind),
    ];
    counter!(LAYER_FAILURES, labels).increment(1);
}

/// Counts a request that is sent again.
pub fn count_client_retry(format: Format, model: &str, kind: &'static str) {
    let mut labels = model_labels(format, model);
    labels.push(Label::from_static_parts("error.type", kind));
    counter!(RETRIES, labels).increment(1);
}

/// A count as histograms take it.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 tokens")]
pub(crate) const fn histogram_value(tokens: u64) -> f64 {
    tokens as f64
}

/// Returns the provider behind a format by OpenTelemetry's name. A host that is compatible with another goes by
/// that one's name.
#[must_use]
pub fn provider_of(format: Format) -> &'static str {
    format.spec().identity().otel_provider
}
