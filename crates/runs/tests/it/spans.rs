//! What tracing is told of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use contexture_runs::turn_text;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::stand::{agent, calling, chat, model, saying, tools};

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of each span, in the order of their beginnings, and in which span each began.
#[derive(Clone, Debug, Default)]
struct Spans(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    spans: Vec<(&'static str, Option<&'static str>, Fields)>,
    entered: Vec<u64>,
}

struct Noted<'a>(&'a mut Fields);

impl Visit for Noted<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

fn index(id: u64) -> usize {
    usize::try_from(id).unwrap() - 1
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Noted(&mut fields));
        let mut seen = self.0.lock().unwrap();
        let within = seen.entered.last();
        let within = within.map(|id| seen.spans.get(index(*id)).unwrap().0);
        seen.spans.push((span.metadata().name(), within, fields));
        Id::from_u64(seen.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut seen = self.0.lock().unwrap();
        let at = index(span.into_u64());
        values.record(&mut Noted(&mut seen.spans.get_mut(at).unwrap().2));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        let mut seen = self.0.lock().unwrap();
        let at = seen.entered.iter().rposition(|open| *open == id.into_u64());
        seen.entered.remove(at.unwrap());
    }
}

fn of<'a>(seen: &'a Seen, name: &str) -> Vec<(Option<&'static str>, &'a Fields)> {
    let spans = seen.spans.iter().filter(|(span, ..)| *span == name);
    spans.map(|(_, within, fields)| (*within, fields)).collect()
}

#[tokio::test]
async fn a_run_is_told_in_the_words_of_opentelemetry() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("c1", "add", r#"{"a":4711,"b":2}"#), ("c2", "add", "{}")]),
        saying("a word nobody else answers"),
    ]);
    let agent = agent(&model).tools(tools(&ran));
    let turn = turn_text(&chat, &agent, "a word nobody else says")
        .await
        .unwrap();

    let seen = spans.0.lock().unwrap();
    let runs = of(&seen, "invoke_agent");
    let run = turn.run.to_string();
    let wanted = Fields::from([
        ("gen_ai.operation.name", "invoke_agent".to_owned()),
        ("gen_ai.agent.name", "tester".to_owned()),
        ("gen_ai.conversation.id", "c".to_owned()),
        ("ctx.run.id", run),
        ("ctx.run.depth", "0".to_owned()),
    ]);
    assert_eq!(runs, [(None, &wanted)]);

    let chats = of(&seen, "chat");
    assert_eq!(chats.len(), 2);
    for (within, fields) in chats {
        assert_eq!(within, Some("invoke_agent"));
        let told = |name| fields.get(name).map(String::as_str);
        assert_eq!(told("gen_ai.operation.name"), Some("chat"));
        assert_eq!(told("gen_ai.provider.name"), Some("openai"));
        assert_eq!(told("gen_ai.request.model"), Some("gpt-4o"));
        assert_eq!(told("gen_ai.usage.input_tokens"), Some("10"));
        assert_eq!(told("gen_ai.usage.output_tokens"), Some("2"));
        assert_eq!(told("error.type"), None);
    }
    let reasons = of(&seen, "chat").into_iter();
    let reasons = reasons.map(|(_, fields)| fields["gen_ai.response.finish_reasons"].as_str());
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [r#"["tool_calls"]"#, r#"["stop"]"#]
    );

    let tools = of(&seen, "execute_tool");
    let told = |name| -> Vec<Option<&str>> {
        let tools = tools.iter();
        tools
            .map(|(_, fields)| fields.get(name).map(String::as_str))
            .collect()
    };
    assert_eq!(told("gen_ai.tool.name"), [Some("add")]);
    assert_eq!(told("gen_ai.tool.call.id"), [Some("c1")]);
    assert_eq!(told("error.type"), [None]);
    assert_eq!(tools[0].0, Some("invoke_agent"));

    let all = format!("{:?}", seen.spans);
    assert!(
        !all.contains("nobody else") && !all.contains("4711"),
        "{all}"
    );
}
