//! What tracing is told of runs: OpenTelemetry's names for agents, calls of models and tools, and no content.
//!
//! The names are those of <https://opentelemetry.io/docs/specs/semconv/gen-ai/>; what has none there is under `ctx.`. A
//! span of a call of a model has what its stream says. Not here: the spans of compiling and recording, which are the
//! engine's, and sending spans anywhere (OTLP): that is the program's subscriber.

use contexture_engine::spans::{provider_of, tell_finish, tell_usage};
use contexture_llm::ModelRequest;
use contexture_wire::StreamEvent;
use tracing::Span;
use tracing::field::Empty;

/// The span of an agent at work, once for each time it is driven.
pub(crate) fn agent_span(agent: &str, conversation: &str, run: &str, depth: u32) -> Span {
    tracing::info_span!(
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = conversation,
        ctx.run.id = run,
        ctx.run.depth = depth,
        error.type = Empty,
    )
}

/// The span of one call of a model, an attempt of several perhaps; [`tell_delta`] fills it.
pub(crate) fn chat_span(request: &ModelRequest, conversation: &str) -> Span {
    tracing::info_span!(
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider_of(request.format),
        gen_ai.request.model = request.model.as_str(),
        gen_ai.conversation.id = conversation,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        error.type = Empty,
    )
}

/// The span of a tool that runs.
pub(crate) fn tool_span(tool: &str, call: &str) -> Span {
    tracing::info_span!(
        "execute_tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.id = call,
        gen_ai.tool.r#type = "function",
        error.type = Empty,
    )
}

/// Says how it failed.
pub(crate) fn tell_error(span: &Span, kind: &str) {
    span.record("error.type", kind);
}

/// What the provider says of its answer; what it does not say is not told.
pub(crate) fn tell_delta(span: &Span, event: &StreamEvent) {
    match event {
        StreamEvent::Started { id, model } => {
            if let Some(id) = id {
                span.record("gen_ai.response.id", id.as_str());
            }
            if let Some(model) = model {
                span.record("gen_ai.response.model", model.as_str());
            }
        }
        StreamEvent::Finished {
            finish: Some(finish),
        } => tell_finish(span, finish),
        StreamEvent::Usage(usage) => tell_usage(span, usage),
        _ => {}
    }
}
