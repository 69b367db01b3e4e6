//! What tracing is told of calls: OpenTelemetry's names for calls of models, and no content.
//!
//! The names are those of <https://opentelemetry.io/docs/specs/semconv/gen-ai/>; what has none there is
//! under `ctx.`.

use contexture_compile::CompileRequest;
use contexture_ir::{FinishReason, ResponseInfo, Usage};
use contexture_wire::Format;
use tracing::Span;
use tracing::field::Empty;

use crate::conversation::Conversation;

/// The span of a compile.
pub(crate) fn compile_span(chat: &Conversation, request: &CompileRequest) -> Span {
    tracing::info_span!(
        "contexture.compile",
        gen_ai.provider.name = provider_of(request.dialect.format),
        gen_ai.request.model = request.model.as_str(),
        gen_ai.conversation.id = chat.id().as_str(),
        ctx.compile.window = request.window,
        ctx.compile.reserve = request.reserve,
    )
}

/// The span of recording an answer; [`tell_answer`] fills it.
pub(crate) fn record_span(chat: &Conversation) -> Span {
    tracing::info_span!(
        "contexture.record",
        gen_ai.conversation.id = chat.id().as_str(),
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
    )
}

/// What the provider said of its answer; what it did not say is not told.
pub(crate) fn tell_answer(span: &Span, model: Option<&str>, info: &ResponseInfo) {
    let texts = [
        ("gen_ai.response.id", info.id.as_deref()),
        ("gen_ai.response.model", model),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            span.record(name, text);
        }
    }
    if let Some(finish) = &info.finish {
        tell_finish(span, finish);
    }
    if let Some(usage) = &info.usage {
        tell_usage(span, usage);
    }
}

/// Who stands behind a format, by OpenTelemetry's names.
#[must_use]
pub const fn provider_of(format: Format) -> &'static str {
    match format {
        Format::Anthropic => "anthropic",
        Format::Gemini => "gcp.gen_ai",
        _ => "openai",
    }
}

/// Why an answer ended, on a span that has `gen_ai.response.finish_reasons`.
pub fn tell_finish(span: &Span, finish: &FinishReason) {
    let reasons = serde_json::json!([finish.as_str()]).to_string();
    span.record("gen_ai.response.finish_reasons", reasons.as_str());
}

/// What a call used, on a span that has the fields `gen_ai.usage.…`; what was not said is not told.
pub fn tell_usage(span: &Span, usage: &Usage) {
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
    ];
    for (name, figure) in figures {
        if let Some(figure) = figure {
            span.record(name, figure);
        }
    }
}
