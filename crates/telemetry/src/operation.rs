//! Operations that take time: a span while they run, a duration when they end.

use std::time::{Duration, Instant};

use contexture_wire::Format;
use metrics::{Label, histogram};
use tracing::Span;
use tracing::field::Empty;

use crate::counters::model_labels;
use crate::metric::{AGENT_DURATION, COMPILE_DURATION, TOOL_DURATION};
use crate::span_fields::record_error;

/// The failure of an operation that was dropped before its end.
const CALLED_OFF: &str = "cancelled";

/// An operation that takes time. It is to be [ended](Self::end); dropped before, it was cancelled.
#[derive(Debug)]
pub struct Operation {
    span: Span,
    duration: &'static str,
    labels: Vec<Label>,
    started: Instant,
    failed: Option<&'static str>,
}

impl Operation {
    pub(crate) fn new(duration: &'static str, labels: Vec<Label>, span: Span) -> Self {
        Self {
            span,
            duration,
            labels,
            started: Instant::now(),
            // Until `end` says otherwise: a future that is dropped never gets to say that it was cancelled.
            failed: Some(CALLED_OFF),
        }
    }

    /// An agent at work, each time it is resumed.
    #[must_use]
    pub fn for_agent(agent: &str, conversation: &str, run: &str, depth: u32) -> Self {
        let span = tracing::info_span!(
            "invoke_agent",
            otel.name = format!("invoke_agent {agent}"),
            otel.kind = "internal",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = conversation,
            ctx.run.id = run,
            ctx.run.depth = depth,
            ctx.run.status = Empty,
            ctx.resource.id = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            ctx.usage.cost_dollars = Empty,
            error.type = Empty,
        );
        let labels = vec![Label::new("gen_ai.agent.name", agent.to_owned())];
        Self::new(AGENT_DURATION, labels, span)
    }

    /// A tool that runs, or a function of a layer, or another agent called as a tool.
    #[must_use]
    pub fn for_tool(tool: &str, call: &str) -> Self {
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = format!("execute_tool {tool}"),
            otel.kind = "internal",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            gen_ai.tool.call.id = call,
            gen_ai.tool.r#type = "function",
            error.type = Empty,
        );
        let labels = vec![
            Label::new("gen_ai.tool.name", tool.to_owned()),
            Label::from_static_parts("gen_ai.tool.type", "function"),
        ];
        Self::new(TOOL_DURATION, labels, span)
    }

    /// A compile, told in this span, which has `error.type`.
    #[must_use]
    pub fn for_compile(format: Format, model: &str, span: Span) -> Self {
        Self::new(COMPILE_DURATION, model_labels(format, model), span)
    }

    /// Span of the operation.
    #[must_use]
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// Ends the operation: well, or with a failure of this kind, a short stable word.
    pub fn end(mut self, failed: Option<&'static str>) {
        self.failed = failed;
    }

    pub(crate) fn set_end(&mut self, failed: Option<&'static str>) {
        self.failed = failed;
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn labels(&self) -> &[Label] {
        &self.labels
    }

    pub(crate) fn set_labels(&mut self, labels: Vec<Label>) {
        self.labels = labels;
    }
}

impl Drop for Operation {
    // Here and not in `end`, so that an early return or a panic is recorded as well.
    fn drop(&mut self) {
        let mut labels = std::mem::take(&mut self.labels);
        if let Some(kind) = self.failed {
            record_error(&self.span, kind);
            labels.push(Label::from_static_parts("error.type", kind));
        }
        histogram!(self.duration, labels).record(self.started.elapsed());
    }
}
