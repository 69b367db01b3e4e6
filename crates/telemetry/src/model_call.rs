//! A call of a model as a span and metrics.

use contexture_ir::{ResponseInfo, Usage};
use contexture_wire::{Format, StreamEvent};
use metrics::{Label, histogram};
use tracing::Span;
use tracing::field::Empty;

use crate::counters::{histogram_value, model_labels};
use crate::metric::{CALL_DURATION, FIRST_CHUNK, TOKEN_USAGE};
use crate::operation::Operation;
use crate::span_fields::{record_finish_reason, record_usage};

/// A call of a model: a span `chat`, and when it is over how long it took and what it used. Dropped before its end it was
/// called off; what had come by then counts.
#[derive(Debug)]
pub struct ModelCall {
    operation: Operation,
    usage: Usage,
    model: Option<String>,
    first_chunk_recorded: bool,
}

impl ModelCall {
    /// A call that begins, in a conversation if it is of one.
    #[must_use]
    pub fn begin(format: Format, model: &str, conversation: Option<&str>) -> Self {
        let mut labels = model_labels(format, model);
        labels.push(Label::from_static_parts("gen_ai.operation.name", "chat"));
        // Every field is declared here, because a span records only fields that it was made with.
        let span = tracing::info_span!(
            "chat",
            otel.name = format!("chat {model}"),
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = crate::provider_of(format),
            gen_ai.request.model = model,
            gen_ai.conversation.id = conversation,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            ctx.usage.cost_dollars = Empty,
            error.type = Empty,
        );
        Self {
            operation: Operation::new(CALL_DURATION, labels, span),
            usage: Usage::default(),
            model: None,
            first_chunk_recorded: false,
        }
    }

    /// Span of the call.
    #[must_use]
    pub const fn span(&self) -> &Span {
        self.operation.span()
    }

    /// Records an event of the streamed answer.
    pub fn record_event(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Started { id, model } => {
                self.record_identity(id.as_deref(), model.as_deref())
            }
            StreamEvent::Finished {
                finish: Some(finish),
            } => record_finish_reason(self.span(), finish),
            StreamEvent::Usage(usage) => self.merge_usage(usage),
            _ => {}
        }
        // The first event of any kind counts: what matters is when the provider began.
        if !std::mem::replace(&mut self.first_chunk_recorded, true) {
            histogram!(FIRST_CHUNK, self.metric_labels()).record(self.operation.elapsed());
        }
    }

    /// Records a whole answer.
    pub fn record_response(&mut self, model: Option<&str>, info: &ResponseInfo) {
        self.record_identity(info.id.as_deref(), model);
        if let Some(finish) = &info.finish {
            record_finish_reason(self.span(), finish);
        }
        if let Some(usage) = &info.usage {
            self.merge_usage(usage);
        }
    }

    /// Ends the call: well, or with a failure of this kind, a short stable word.
    pub fn end(mut self, failed: Option<&'static str>) {
        self.operation.set_end(failed);
    }

    /// Returns the labels as far as they are known by now.
    fn metric_labels(&self) -> Vec<Label> {
        let mut labels = self.operation.labels().to_vec();
        let model = self.model.clone();
        labels.extend(model.map(|model| Label::new("gen_ai.response.model", model)));
        labels
    }

    fn record_identity(&mut self, id: Option<&str>, model: Option<&str>) {
        if let Some(id) = id {
            self.span().record("gen_ai.response.id", id);
        }
        if let Some(model) = model {
            self.span().record("gen_ai.response.model", model);
            // Kept for the metrics: the provider may answer with a dated name of the model.
            self.model = Some(model.to_owned());
        }
    }

    /// Usage as it is known by now: what comes later in a stream counts from its beginning.
    fn merge_usage(&mut self, usage: &Usage) {
        record_usage(self.span(), usage);
        // The later report wins where it says something: some providers send input first and output at the end.
        self.usage.input_tokens = usage.input_tokens.or(self.usage.input_tokens);
        self.usage.output_tokens = usage.output_tokens.or(self.usage.output_tokens);
    }
}

impl Drop for ModelCall {
    // Recorded when dropped, so that a call that was cancelled still counts what it used.
    fn drop(&mut self) {
        let all = self.metric_labels();
        for (what, tokens) in [
            ("input", self.usage.input_tokens),
            ("output", self.usage.output_tokens),
        ] {
            if let Some(tokens) = tokens {
                let mut labels = all.clone();
                labels.push(Label::from_static_parts("gen_ai.token.type", what));
                histogram!(TOKEN_USAGE, labels).record(histogram_value(tokens));
            }
        }
        // Handed back last: the operation records its duration with the answering model as well.
        self.operation.set_labels(all);
    }
}
