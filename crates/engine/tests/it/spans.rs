//! What tracing is told of a call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use contexture_compile::Target;
use contexture_ir::user;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::chat;

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of each span, in the order of their beginnings.
#[derive(Clone, Debug, Default)]
struct Spans(Arc<Mutex<Vec<(&'static str, Fields)>>>);

struct Noted<'a>(&'a mut Fields);

impl Visit for Noted<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Noted(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push((span.metadata().name(), fields));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().unwrap();
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Noted(&mut spans[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Spans {
    fn of(&self, name: &str) -> Vec<Fields> {
        let spans = self.0.lock().unwrap();
        let named = spans.iter().filter(|(span, _)| *span == name);
        named.map(|(_, fields)| fields.clone()).collect()
    }
}

fn fields<'a>(pairs: &[(&'static str, &'a str)]) -> BTreeMap<&'static str, &'a str> {
    pairs.iter().copied().collect()
}

fn seen(fields: &Fields) -> BTreeMap<&'static str, &str> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

fn values(value: DebugValue) -> Vec<f64> {
    match value {
        DebugValue::Counter(sum) => vec![f64::from(u32::try_from(sum).unwrap())],
        DebugValue::Histogram(values) => values.into_iter().map(f64::from).collect(),
        DebugValue::Gauge(_) => Vec::new(),
    }
}

#[tokio::test]
async fn a_call_is_told_in_the_words_of_opentelemetry() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let recorder = DebuggingRecorder::new();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let chat = chat().await;
    chat.save([user("a word nobody else says")]).await.unwrap();
    let target = Target::anthropic("claude-sonnet-4-5")
        .window(50_000)
        .reserve(1_000);
    let call = chat.compile(&target).await.unwrap();
    let answer = json!({
        "id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "a word nobody else answers"}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 3,
            "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7},
    });
    // Once more is as if it had not been.
    for _ in 0..2 {
        chat.record(&call, &answer.to_string()).await.unwrap();
    }

    let heard: BTreeMap<String, Vec<f64>> = recorder
        .snapshotter()
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| (key.key().name().to_owned(), values(value)))
        .collect();
    let tokens = |tokens: u64| vec![f64::from(u32::try_from(tokens).unwrap())];
    assert_eq!(heard["ctx.items.appended"], [2.0]);
    assert_eq!(
        heard["ctx.compile.tokens"],
        tokens(call.report.totals.tokens)
    );
    assert_eq!(heard["ctx.compile.omitted_tokens"], [0.0]);
    assert_eq!(heard["ctx.compile.duration"].len(), 1);
    assert_eq!(heard["ctx.cache.read_tokens"], [5.0]);
    let predicted = call.report.cache.predicted.read;
    assert_eq!(heard["ctx.cache.predicted_read_tokens"], tokens(predicted));
    assert_eq!(heard.len(), 6, "{heard:?}");

    let total = call.report.totals.tokens.to_string();
    let compiles = spans.of("contexture.compile");
    let wanted = fields(&[
        ("ctx.compile.reserve", "1000"),
        ("ctx.compile.tokens", &total),
        ("ctx.compile.window", "50000"),
        ("gen_ai.conversation.id", "c"),
        ("gen_ai.provider.name", "anthropic"),
        ("gen_ai.request.model", "claude-sonnet-4-5"),
    ]);
    assert_eq!(compiles.iter().map(seen).collect::<Vec<_>>(), [wanted]);
    let records = spans.of("contexture.record");
    let wanted = fields(&[
        ("gen_ai.conversation.id", "c"),
        ("gen_ai.response.finish_reasons", r#"["stop"]"#),
        ("gen_ai.response.id", "msg_1"),
        ("gen_ai.response.model", "claude-sonnet-4-5-20250929"),
        ("gen_ai.usage.cache_creation.input_tokens", "7"),
        ("gen_ai.usage.cache_read.input_tokens", "5"),
        ("gen_ai.usage.input_tokens", "24"),
        ("gen_ai.usage.output_tokens", "3"),
    ]);
    assert_eq!(
        records.iter().map(seen).collect::<Vec<_>>(),
        [wanted.clone(), wanted]
    );
    let all = format!("{:?}", spans.0.lock().unwrap());
    assert!(!all.contains("nobody else"), "{all}");
}

#[tokio::test]
async fn what_was_not_reported_is_not_told() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let target = Target::openai_chat("gpt-4o").window(8_000);
    let call = chat.compile(&target).await.unwrap();
    let answer = json!({
        "object": "chat.completion", "created": 1,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}],
    });
    chat.record(&call, &answer.to_string()).await.unwrap();
    let records = spans.of("contexture.record");
    let told: Vec<_> = records.iter().map(|fields| fields.len()).collect();
    assert_eq!(told, [1], "{records:?}");
}
