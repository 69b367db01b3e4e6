//! Tracing spans of compiling and recording, without content.
//!
//! Not here: spans of model calls, tools and agents, and all metrics (`contexture-telemetry`).

use contexture_compile::CompileRequest;
use contexture_ir::ResponseInfo;
use contexture_telemetry::{provider_of, record_finish_reason, record_usage};
use tracing::Span;
use tracing::field::Empty;

use super::conversation::Conversation;

/// The span of a compile.
pub(crate) fn compile_span(chat: &Conversation, request: &CompileRequest) -> Span {
    tracing::info_span!(
        "contexture.compile",
        gen_ai.provider.name = provider_of(request.dialect.format),
        gen_ai.request.model = request.model.as_str(),
        gen_ai.conversation.id = chat.id().as_str(),
        ctx.compile.window = request.window,
        ctx.compile.reserve = request.reserve,
        ctx.compile.tokens = Empty,
        error.type = Empty,
    )
}

/// The span of recording an answer; [`record_response_fields`] fills it.
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
        gen_ai.usage.reasoning.output_tokens = Empty,
    )
}

/// What the provider said of its answer; what it did not say is not told.
pub(crate) fn record_response_fields(span: &Span, model: Option<&str>, info: &ResponseInfo) {
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
        record_finish_reason(span, finish);
    }
    if let Some(usage) = &info.usage {
        record_usage(span, usage);
    }
}
