//! Fields that are recorded on spans which declare them.

use contexture_ir::{FinishReason, Usage};
use tracing::Span;

/// The version of the conventions that names and values follow. They are still in development: a later version may name things
/// otherwise.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/1.42.0";

/// Fields whose values are lists, written as JSON.
pub const LIST_FIELDS: [&str; 1] = ["gen_ai.response.finish_reasons"];

/// A durable step of a program, which runs in an agent's run.
#[must_use]
pub fn step_span(run: &str, step: &str) -> Span {
    tracing::info_span!(
        "contexture.step",
        otel.name = format!("step {step}"),
        otel.kind = "internal",
        ctx.run.id = run,
        ctx.step.name = step,
        error.type = tracing::field::Empty,
    )
}

/// A wait on a channel: `operation` is `send` or `receive`.
#[must_use]
pub fn channel_span(channel: &str, operation: &'static str) -> Span {
    tracing::debug_span!(
        "contexture.channel",
        otel.name = format!("{operation} {channel}"),
        otel.kind = "internal",
        ctx.channel.name = channel,
        ctx.channel.operation = operation,
        error.type = tracing::field::Empty,
    )
}

/// Records how an operation failed, on a span that has `error.type`: a short stable word, never a message.
pub fn record_error(span: &Span, kind: &str) {
    span.record("error.type", kind);
}

/// Records why an answer ended, on a span that has `gen_ai.response.finish_reasons`.
pub fn record_finish_reason(span: &Span, finish: &FinishReason) {
    // The convention wants a list; `tracing` has no list values, so it is written as JSON. `contexture-otlp` sends the list.
    let reasons = serde_json::json!([finish.as_str()]).to_string();
    span.record("gen_ai.response.finish_reasons", reasons.as_str());
}

/// Records a cost in dollars, on a span that has `ctx.usage.cost_dollars`.
pub fn record_cost(span: &Span, dollars: f64) {
    span.record("ctx.usage.cost_dollars", dollars);
}

/// Records what a call used, on a span that has the fields `gen_ai.usage.…`; what was not reported is not
/// recorded.
pub fn record_usage(span: &Span, usage: &Usage) {
    let figures = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        (
            "gen_ai.usage.cache_read.input_tokens",
            usage.cache_read_tokens,
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write_tokens,
        ),
        (
            "gen_ai.usage.reasoning.output_tokens",
            usage.reasoning_tokens,
        ),
    ];
    for (name, figure) in figures {
        if let Some(figure) = figure {
            span.record(name, figure);
        }
    }
}
