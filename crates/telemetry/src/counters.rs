//! Figures of moments: what is told once and takes no time.

use contexture_ir::Usage;
use contexture_wire::Format;
use metrics::{Label, counter, histogram};

use crate::metric::{
    CACHE_PREDICTED, CACHE_READ, COMPACTIONS, COMPILE_TOKENS, ITEMS, LAYER_FAILURES,
    OMITTED_TOKENS, RETRIES,
};

pub(crate) fn model_labels(format: Format, model: &str) -> Vec<Label> {
    vec![
        Label::from_static_parts("gen_ai.provider.name", provider_of(format)),
        Label::new("gen_ai.request.model", model.to_owned()),
    ]
}

/// A call was compiled: what it holds, and what it would have held beside that.
pub fn record_compile(format: Format, model: &str, tokens: u64, omitted: u64) {
    let labels = model_labels(format, model);
    histogram!(COMPILE_TOKENS, labels.clone()).record(histogram_value(tokens));
    counter!(OMITTED_TOKENS, labels).increment(omitted);
}

/// An answer was recorded: what its provider read from a cache, beside what was predicted. What was not reported is not
/// told.
pub fn record_cache_read(format: Format, model: &str, usage: Option<&Usage>, predicted: u64) {
    if let Some(read) = usage.and_then(|usage| usage.cache_read_tokens) {
        let labels = model_labels(format, model);
        counter!(CACHE_READ, labels.clone()).increment(read);
        counter!(CACHE_PREDICTED, labels).increment(predicted);
    }
}

/// Items were stored.
pub fn count_appended_items(items: usize) {
    counter!(ITEMS).increment(items as u64);
}

/// A compaction was stored.
pub fn count_compaction() {
    counter!(COMPACTIONS).increment(1);
}

/// A hook of a layer failed.
pub fn count_layer_failure(layer: &str, hook: &'static str, kind: &'static str) {
    let labels = vec![
        Label::new("ctx.layer.id", layer.to_owned()),
        Label::from_static_parts("ctx.layer.hook", hook),
        Label::from_static_parts("error.type", kind),
    ];
    counter!(LAYER_FAILURES, labels).increment(1);
}

/// A request is sent again.
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

/// Who stands behind a format, by OpenTelemetry's names. A host that is compatible with another goes by that one's name.
#[must_use]
pub const fn provider_of(format: Format) -> &'static str {
    match format {
        Format::Anthropic => "anthropic",
        Format::Gemini => "gcp.gen_ai",
        _ => "openai",
    }
}
