//! What tracing is told of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contexture_compile::{Contribution, Target};
use contexture_engine::{CompactOptions, ModelCompactor};
use contexture_ir::{assistant_text, user};
use contexture_layers::builtin::Memory;
use contexture_layers::{
    HookContext, Layer, LayerError, LayerId, LayerSpec, Layers, RecallInput, ToolGate, ToolRequest,
};
use contexture_models::{ModelError, ScriptedModel};
use contexture_runs::{
    Agent, Channel, Retry, Run, SubAgent, ToolFailure, WaitTimeout, run_turn_with_text,
};
use metrics_util::CompositeKey;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::test_support::{agent, calling, chat, model, said as user_said, saying, tool, tools};

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of each span, in the order of their beginnings, and in which span each began.
#[derive(Clone, Debug, Default)]
struct Spans(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    spans: Vec<(&'static str, Option<&'static str>, Fields)>,
    entered: Vec<u64>,
    /// The level of each and the fields it may have.
    kinds: BTreeMap<&'static str, (String, Vec<&'static str>)>,
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
        let names = span.metadata().fields().iter().map(|field| field.name());
        let level = span.metadata().level().as_str().to_lowercase();
        let kind = (level, names.collect());
        seen.kinds.insert(span.metadata().name(), kind);
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
    let engine = contexture_engine::Engine::in_memory();
    let chat = engine.conversation("c").resource("ada");
    let chat = chat.open().await.unwrap();
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("c1", "add", r#"{"a":4711,"b":2}"#), ("c2", "add", "{}")]),
        saying("a word nobody else answers"),
    ]);
    let agent = agent(&model).with_tools(tools(&ran)).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "a word nobody else says")
        .await
        .unwrap();

    let seen = spans.0.lock().unwrap();
    let runs = of(&seen, "invoke_agent");
    let run = turn.run.to_string();
    let wanted = Fields::from([
        ("otel.name", "invoke_agent tester".to_owned()),
        ("otel.kind", "internal".to_owned()),
        ("gen_ai.operation.name", "invoke_agent".to_owned()),
        ("gen_ai.agent.name", "tester".to_owned()),
        ("gen_ai.conversation.id", "c".to_owned()),
        ("ctx.run.id", run),
        ("ctx.run.depth", "0".to_owned()),
        ("ctx.run.status", "completed".to_owned()),
        ("ctx.resource.id", "ada".to_owned()),
        // Of the whole run: two answers.
        ("gen_ai.usage.input_tokens", "20".to_owned()),
        ("gen_ai.usage.output_tokens", "4".to_owned()),
        ("ctx.usage.cost_dollars", "9e-5".to_owned()),
    ]);
    assert_eq!(runs, [(None, &wanted)]);

    let chats = of(&seen, "chat");
    assert_eq!(chats.len(), 2);
    for (within, fields) in chats {
        assert_eq!(within, Some("invoke_agent"));
        let told = |name| fields.get(name).map(String::as_str);
        assert_eq!(told("otel.name"), Some("chat gpt-4o"));
        assert_eq!(told("otel.kind"), Some("client"));
        assert_eq!(told("gen_ai.operation.name"), Some("chat"));
        assert_eq!(told("gen_ai.provider.name"), Some("openai"));
        assert_eq!(told("gen_ai.request.model"), Some("gpt-4o"));
        assert_eq!(told("gen_ai.usage.input_tokens"), Some("10"));
        assert_eq!(told("gen_ai.usage.output_tokens"), Some("2"));
        assert_eq!(told("ctx.usage.cost_dollars"), Some("4.5e-5"));
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
    assert_eq!(told("otel.name"), [Some("execute_tool add")]);
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

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(4_000).reserve(500)
}

/// A layer whose words never come.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl Layer for Broken {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("broken").unwrap())
    }

    async fn recall(&self, (): &(), _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Err(LayerError::from_message("a word nobody else knows"))
    }

    async fn before_tool(
        &self,
        (): &mut (),
        call: &ToolRequest,
        _: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        Ok(match call.tool.as_str() {
            "gated" => ToolGate::Deny("no".to_owned()),
            _ => ToolGate::Allow,
        })
    }
}

/// What the page says of spans: name, level, attributes.
fn page() -> BTreeMap<String, (String, Vec<String>)> {
    let page = include_str!("../../../../docs/observability.md");
    let spans = page.split("## Spans").nth(1).unwrap();
    let spans = spans.split("## Metrics").next().unwrap();
    let rows = spans.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let word = |text: &str| text.trim_matches(['|', ' ', '`']).to_owned();
        let attributes = cells[2].split(", ").map(word);
        (word(cells[0]), (word(cells[1]), attributes.collect()))
    };
    rows.map(row).collect()
}

/// What was told: each metric, its attributes, how often or how much.
type Told = Vec<(String, BTreeMap<String, String>, u64)>;

fn told(recorder: &DebuggingRecorder) -> Told {
    let heard = recorder.snapshotter().snapshot().into_vec();
    let row = |(key, _, _, value): (CompositeKey, _, _, DebugValue)| {
        let labels = key.key().labels();
        let labels = labels.map(|label| (label.key().to_owned(), label.value().to_owned()));
        let times = match value {
            DebugValue::Counter(sum) => sum,
            DebugValue::Histogram(values) => values.len() as u64,
            DebugValue::Gauge(_) => unreachable!("{key:?}"),
        };
        (key.key().name().to_owned(), labels.collect(), times)
    };
    heard.into_iter().map(row).collect()
}

/// How often a metric was told, by some of its attributes.
fn by(told: &Told, metric: &str, names: &[&str]) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for (_, labels, times) in told.iter().filter(|(name, ..)| name == metric) {
        let labels: Vec<&str> = names
            .iter()
            .filter_map(|name| labels.get(*name))
            .map(String::as_str)
            .collect();
        *rows.entry(labels.join(" ")).or_default() += times;
    }
    rows
}

fn counted(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter()
        .map(|(row, times)| ((*row).to_owned(), *times))
        .collect()
}

#[tokio::test]
async fn all_that_happens_is_told_as_the_page_says() {
    let spans = Spans::default();
    let _spans = tracing::subscriber::set_default(spans.clone());
    let recorder = DebuggingRecorder::new();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let chat = chat().await;
    let layers = Layers::new().with_layer(Memory::new()).unwrap();
    chat.set_layers(layers.with_layer(Broken).unwrap());
    let ran = Arc::new(AtomicU32::new(0));
    let mut tools = tools(&ran);
    tool(&mut tools, "fails", || {
        Err(ToolFailure::from_message("a word nobody else says"))
    });
    let late = ModelError::Timeout {
        model: "gpt-4o".to_owned(),
        awaited: "answer",
        limit_ms: 1,
    };
    let calls = [
        ("c1", "add", r#"{"a":4711,"b":2}"#),
        ("c2", "fails", "{}"),
        ("c3", "gated", "{}"),
        ("c4", "create_memory", r#"{"key":"k","value":"4711"}"#),
        ("c5", "think", r#"{"task":"4711"}"#),
    ];
    let model = Arc::new(ScriptedModel::new([
        Err(late),
        Ok(calling(&calls)),
        Ok(saying("A word nobody else answers.")),
    ]));
    let thinker = Agent::new(
        "thinker",
        self::model([saying("4711")]),
        Target::openai_chat("gpt-4o"),
    );
    let agent = agent(&model)
        .with_tools(tools)
        .unwrap()
        .with_sub_agent("think", SubAgent::new(thinker, "Thinks."))
        .unwrap()
        .with_retry(Retry {
            initial: Duration::ZERO,
            ..Retry::default()
        });
    run_turn_with_text(&chat, &agent, "A word nobody else says.")
        .await
        .unwrap();
    let mut run = Run::begin(&chat, &agent, [user_said("A word nobody else says.")])
        .await
        .unwrap();
    let look = run.run_durable_step("look", || async { Ok::<_, std::fmt::Error>(4711) });
    look.await.unwrap();
    let (handle, channel) = (run.handle(), Channel::<u32>::queue("jobs"));
    let (channels, wait) = (handle.channels(), WaitTimeout::default());
    let sent = channels.send(&channel, 4711, wait, handle.abort_signal());
    sent.await.unwrap();
    let received = channels.recv(&channel, wait, handle.abort_signal());
    assert_eq!(received.await.unwrap(), 4711);
    drop(run);
    chat.read_context("{}").await.unwrap();
    for _ in 0..8 {
        // Only between a question and its answer can a history be cut.
        chat.save([user("4711 ".repeat(400)), assistant_text("Noted.")])
            .await
            .unwrap();
    }
    let options = CompactOptions {
        compactor: Arc::new(ModelCompactor::new(
            self::model([saying("Sums.")]),
            target(),
        )),
        ..CompactOptions::default()
    };
    chat.compact(&target(), &options).await.unwrap();

    let told = told(&recorder);
    let by = |metric: &str, names: &[&str]| by(&told, metric, names);
    assert_eq!(
        by(
            "gen_ai.execute_tool.duration",
            &["gen_ai.tool.name", "error.type"]
        ),
        counted(&[
            ("add", 1),
            ("fails tool_failed", 1),
            ("create_memory", 1),
            ("think", 1)
        ])
    );
    assert_eq!(
        by(
            "gen_ai.invoke_agent.duration",
            &["gen_ai.agent.name", "error.type"]
        ),
        counted(&[("tester", 1), ("thinker", 1)])
    );
    // Two of the agent and one that failed, one of its child, one for the summary.
    assert_eq!(
        by("gen_ai.client.operation.duration", &["error.type"]),
        counted(&[("", 4), ("model_timeout", 1)])
    );
    assert_eq!(
        by("gen_ai.client.token.usage", &["gen_ai.token.type"]),
        counted(&[("input", 4), ("output", 4)])
    );
    assert_eq!(
        by(
            "ctx.layer.failures",
            &["ctx.layer.id", "ctx.layer.hook", "error.type"]
        )
        .into_keys()
        .collect::<Vec<_>>(),
        ["broken recall failed"]
    );
    assert_eq!(by("ctx.compactions", &[]), counted(&[("", 1)]));

    let seen = spans.0.lock().unwrap();
    let kinds = seen.kinds.iter().map(|(name, (level, fields))| {
        let fields = fields.iter().map(|field| (*field).to_owned());
        ((*name).to_owned(), (level.clone(), fields.collect()))
    });
    assert_eq!(kinds.collect::<BTreeMap<_, _>>(), page());
    let within = |name: &str| -> Vec<_> {
        let spans = of(&seen, name).into_iter();
        spans
            .map(|(within, fields)| (within, fields.get("gen_ai.tool.name").cloned()))
            .collect()
    };
    let inside = |name: &str| (Some("invoke_agent"), Some(name.to_owned()));
    assert_eq!(
        within("execute_tool"),
        ["add", "fails", "create_memory", "think"].map(inside)
    );
    assert_eq!(
        within("invoke_agent"),
        [(None, None), (Some("execute_tool"), None)]
    );
    let hooks: BTreeSet<_> = of(&seen, "contexture.layer")
        .into_iter()
        .map(|(_, fields)| format!("{} {}", fields["ctx.layer.id"], fields["ctx.layer.hook"]))
        .collect();
    for hook in [
        "broken recall",
        "broken before_tool",
        "memory function",
        "memory observe",
        "memory on_complete",
    ] {
        assert!(hooks.contains(hook), "{hook}: {hooks:?}");
    }
    let all = format!("{:?}", seen.spans);
    assert!(
        !all.contains("nobody else") && !all.contains("4711"),
        "{all}"
    );
}
