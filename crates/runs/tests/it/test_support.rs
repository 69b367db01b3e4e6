//! A stage for agents: a conversation in memory, tools that add, models that say what was written down.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use contexture_compile::Target;
use contexture_engine::{Conversation, Engine, TestClock, TestIds};
use contexture_ir::{Item, Message, Raw, Role, quote_json};
use contexture_layers::Rerun;
use contexture_models::{
    Model, ModelError, ModelRequest, ModelResponse, ScriptedModel, text_response,
};
use contexture_runs::{
    Agent, RunError, ToolBox, ToolCall, ToolConcurrency, ToolFailure, ToolOptions, ToolOutput,
};
use contexture_store::{PathEnd, ReadRequest, Store};
use contexture_tools::{Policy, Tool};
use contexture_wire::Format;
use tokio::sync::Notify;

pub(crate) async fn chat() -> Conversation {
    open(Engine::in_memory()).await
}

#[expect(dead_code, reason = "for stores that fail")]
pub(crate) async fn over(store: Arc<dyn Store>) -> Conversation {
    open(Engine::new(store)).await
}

async fn open(engine: Engine) -> Conversation {
    let engine = engine
        .with_clock(TestClock::new(1_000))
        .with_ids(TestIds::default());
    engine.conversation("c").open().await.unwrap()
}

pub(crate) fn agent(model: &Arc<ScriptedModel>) -> Agent {
    Agent::new("tester", model.clone(), Target::openai_chat("gpt-4o"))
}

pub(crate) fn model(answers: impl IntoIterator<Item = ModelResponse>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(answers.into_iter().map(Ok)))
}

/// An agent whose model gives one answer and then none, and what says that it was asked a second time: for processes that die
/// while their model works.
pub(crate) fn answers_once(answer: ModelResponse) -> (Agent, Arc<Notify>) {
    let hung = Arc::new(Notify::new());
    let model = AnswersOnce(Mutex::new(Some(answer)), Arc::clone(&hung));
    let target = Target::openai_chat("gpt-4o");
    (Agent::new("tester", Arc::new(model), target), hung)
}

#[derive(Debug)]
struct AnswersOnce(Mutex<Option<ModelResponse>>, Arc<Notify>);

#[async_trait]
impl Model for AnswersOnce {
    async fn answer(&self, _: ModelRequest) -> Result<ModelResponse, ModelError> {
        let answer = self.0.lock().unwrap().take();
        match answer {
            Some(answer) => Ok(answer),
            None => {
                self.1.notify_one();
                std::future::pending().await
            }
        }
    }
}

pub(crate) fn saying(text: &str) -> ModelResponse {
    let body = text_response(Format::OpenAiChat, text);
    ModelResponse::new(body.replace(
        r#""prompt_tokens":1,"completion_tokens":1,"total_tokens":2"#,
        r#""prompt_tokens":10,"completion_tokens":2,"total_tokens":12"#,
    ))
}

/// What a user says.
pub(crate) fn said(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

/// An answer that calls: ids, names, arguments.
pub(crate) fn calling(calls: &[(&str, &str, &str)]) -> ModelResponse {
    let calls = calls.iter().map(|(id, name, arguments)| {
        let (id, name, arguments) = (quote_json(id), quote_json(name), quote_json(arguments));
        format!(r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#)
    });
    let calls: Vec<String> = calls.collect();
    ModelResponse::new(format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"scripted","choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{}]}},"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}}}"#,
        calls.join(",")
    ))
}

#[derive(serde::Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

/// `add`, which may be run again; `gated` and `asked`; `forbidden`, which the policy denies.
pub(crate) fn tools(ran: &Arc<AtomicU32>) -> ToolBox {
    let mut tools = ToolBox::new(Policy::default().deny("forbidden"));
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#;
    let schema = Raw::parse(schema).unwrap();
    let options = ToolOptions {
        rerun: Rerun::Repeat,
        concurrency: ToolConcurrency::Parallel,
        ..ToolOptions::default()
    };
    let counted = Arc::clone(ran);
    let add = move |call: ToolCall| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let sum: Sum = call
                .arguments
                .parse_as()
                .map_err(ToolFailure::from_message)?;
            Ok(ToolOutput::from((sum.a + sum.b).to_string()))
        }
    };
    tools
        .add_tool_with(Tool::function("add", "Adds.", schema), options, add)
        .unwrap();
    for name in ["gated", "asked", "forbidden"] {
        let counted = Arc::clone(ran);
        tool(&mut tools, name, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(ToolOutput::from("ran"))
        });
    }
    tools
}

/// A tool without arguments.
pub(crate) fn tool(
    tools: &mut ToolBox,
    name: &str,
    run: impl Fn() -> Result<ToolOutput, ToolFailure> + Send + Sync + 'static,
) {
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let run = Arc::new(run);
    let handler = move |_: ToolCall| {
        let run = Arc::clone(&run);
        async move { run() }
    };
    tools
        .add_tool(Tool::function(name, "Does something.", schema), handler)
        .unwrap();
}

/// Repeats what is refused because a process that may have died drives the run, once that counts as dead.
pub(crate) async fn when_free<T>(
    mut work: impl AsyncFnMut() -> Result<T, RunError>,
) -> Result<T, RunError> {
    loop {
        match work().await {
            Err(RunError::Busy {
                dead_in: Some(dead_in),
                ..
            }) => tokio::time::sleep(dead_in).await,
            done => return done,
        }
    }
}

/// What the branch says, a line an item.
pub(crate) async fn transcript(chat: &Conversation) -> Vec<String> {
    let store = chat.engine().store();
    let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let page = store
        .read_path(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    let items = page
        .nodes
        .iter()
        .map(|node| Item::parse(&node.json).unwrap());
    let line = |item: Item| match &item {
        Item::Message(message) => Some(format!("{} {}", message.role.as_str(), item.text())),
        Item::FunctionCall(call) => Some(format!("call {}", call.name)),
        Item::FunctionCallOutput(_) => Some(format!("output {}", item.text())),
        _ => None,
    };
    items.filter_map(line).collect()
}
