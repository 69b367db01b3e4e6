//! An agent of many steps whose model and tools say what follows from what they are asked: cut off anywhere and gone on
//! with, it says the same.
//!
//! Not here: who cuts it off (`crash`, `killed`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use contexture_compile::Target;
use contexture_engine::{Clock, Conversation, Engine, PrepareOptions, TestIds, Trigger};
use contexture_ir::{Item, NodeId, Raw};
use contexture_layers::builtin::memory::Memory;
use contexture_layers::{LayerId, Layers, Rerun, StateScope};
use contexture_models::ScriptedModel;
use contexture_runs::{
    Agent, Run, RunError, RunUsage, SubAgent, ToolBox, ToolCall, ToolConcurrency, ToolFailure,
    ToolOptions, ToolOutput, Turn, list_runs, post_to_inbox,
};
use contexture_store::{ListEntries, Node, PathEnd, ReadRequest, StateRequest, Store};
use contexture_tools::{Policy, Tool};

use crate::test_support::{calling, saying, when_free};
use crate::usage::Tally;

/// What a call that was begun before a crash is answered.
pub(crate) const UNKNOWN: &str = "nobody knows whether it did its work";

/// A clock that stands: whenever a run is gone on with, it is the same time.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now_ms(&self) -> i64 {
        1_000
    }
}

/// A process's view of the store. What calibration learns depends on how often a process began, so nobody learns.
pub(crate) async fn open(store: Arc<dyn Store>) -> Result<Conversation, RunError> {
    let engine = Engine::new(store)
        .with_clock(Still)
        .with_ids(TestIds::default())
        .without_calibration();
    let chat = engine.conversation("c").resource("r").open().await?;
    let shared = Memory::new().with_spec(|spec| spec.id = LayerId::new("notes").unwrap());
    let tally = Tally {
        scope: StateScope::Resource,
        gates: false,
    };
    let layers = Layers::new()
        .with_layer(Memory::new().with_scope(StateScope::Path))
        .and_then(|layers| layers.with_layer(shared))
        .and_then(|layers| layers.with_layer(tally));
    chat.set_layers(layers.unwrap());
    Ok(chat)
}

/// How often a call begins with something else: the calls of a stage.
fn stage(n: usize) -> Vec<(&'static str, String)> {
    let sum = |a: usize| ("add", format!(r#"{{"a":{a},"b":{n}}}"#));
    let note = |tool, word: &str| {
        (
            tool,
            format!(r#"{{"key":"k{}","value":"{word} {n}"}}"#, n % 3),
        )
    };
    match n % 6 {
        0 => vec![sum(1), sum(2)],
        1 => vec![("once", "{}".into()), note("create_memory", "path"), sum(3)],
        2 => vec![
            note("create_notes", "shared"),
            ("tally_one", "{}".into()),
            ("long", "{}".into()),
        ],
        3 => vec![
            ("think", format!(r#"{{"task":"task {n}"}}"#)),
            ("once", "{}".into()),
        ],
        4 => vec![("once", "{}".into()), ("fail", "{}".into()), sum(4)],
        _ => vec![
            note("create_memory", "path"),
            ("long", "{}".into()),
            note("create_notes", "shared"),
        ],
    }
}

/// Which stage comes next, by the ids of calls in a payload.
fn next_stage(payload: &str) -> usize {
    let ids = payload.split("\"stage-").skip(1);
    let done = ids.filter_map(|id| id.split('-').next()?.parse::<usize>().ok());
    done.max().map_or(0, |last| last + 1)
}

fn model(stages: usize) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::with_fn(move |request| {
        let n = next_stage(&request.payload);
        if n >= stages {
            return Ok(saying("All done."));
        }
        let calls = stage(n);
        let ids: Vec<String> = (0..calls.len())
            .map(|at| format!("stage-{n}-{at}"))
            .collect();
        let calls = ids.iter().zip(&calls);
        let calls: Vec<_> = calls
            .map(|(id, (tool, arguments))| (id.as_str(), *tool, arguments.as_str()))
            .collect();
        Ok(calling(&calls))
    }))
}

/// A child that adds once, and says what it was told.
fn thinker() -> SubAgent {
    let model = Arc::new(ScriptedModel::with_fn(|request| {
        Ok(match next_stage(&request.payload) {
            0 => calling(&[("stage-0-0", "add", r#"{"a":20,"b":22}"#)]),
            _ => saying("Forty-two."),
        })
    }));
    let agent = Agent::new("thinker", model, Target::openai_chat("gpt-4o"))
        .with_tools(tools(Rerun::Repeat))
        .unwrap();
    SubAgent::new(agent, "Thinks.")
}

fn tools(once: Rerun) -> ToolBox {
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let mut tools = ToolBox::new(Policy::default());
    let again = ToolOptions {
        rerun: Rerun::Repeat,
        concurrency: ToolConcurrency::Parallel,
        ..ToolOptions::default()
    };
    let once = ToolOptions {
        rerun: once,
        ..ToolOptions::default()
    };
    for (name, options) in [
        ("add", again),
        ("long", again),
        ("fail", again),
        ("once", once),
    ] {
        let tool = Tool::function(name, "Does its work.", schema.clone());
        let run = move |call: ToolCall| async move {
            match name {
                "fail" => Err(ToolFailure::from_message("it always does")),
                "long" => Ok(ToolOutput::from("word ".repeat(300))),
                _ => Ok(ToolOutput::from(format!("{name} {}", call.arguments.get()))),
            }
        };
        tools.add_tool_with(tool, options, run).unwrap();
    }
    tools
}

/// The agent: so many stages, then it is done. `once` says what becomes of a tool that was cut off.
pub(crate) fn agent(stages: usize, once: Rerun) -> Agent {
    let prepare = PrepareOptions {
        trigger: Trigger::Tokens(2_500),
        ..PrepareOptions::default()
    };
    Agent::new(
        "worker",
        model(stages),
        Target::openai_chat("gpt-4o").window(16_000),
    )
    .with_tools(tools(once))
    .unwrap()
    // The stages are as many as a test asks for.
    .with_max_answers(None)
    .with_sub_agent("think", thinker())
    .unwrap()
    .with_prepare_options(prepare)
}

/// A conversation with something in the inbox.
pub(crate) async fn set_up(store: Arc<dyn Store>) {
    let chat = open(store).await.unwrap();
    post_to_inbox(&chat, &said("Hello too.")).await.unwrap();
}

fn said(text: &str) -> Item {
    Item::Message(contexture_ir::Message::text(
        contexture_ir::Role::User,
        text,
    ))
}

/// Begins the run, or goes on with it; `None` where it has ended before.
pub(crate) async fn go_on(
    store: Arc<dyn Store>,
    stages: usize,
    once: Rerun,
) -> Result<Option<Turn>, RunError> {
    let chat = open(store).await?;
    let agent = agent(stages, once);
    let listed = list_runs(chat.engine(), chat.owner(), Some(&chat)).await?;
    let root = listed.iter().find(|run| run.parent.is_none());
    let mut run = match root {
        Some(entry) if entry.status.is_open() => {
            let id = entry.id().unwrap();
            match when_free(async || Run::resume(&chat, id, &agent).await).await {
                Ok(run) => run,
                // It never began, or only its entry was missing.
                Err(RunError::ItemMismatch { .. }) => {
                    return Box::pin(go_on_after(chat, &agent)).await;
                }
                Err(error) => return Err(error),
            }
        }
        Some(entry) if entry.status == contexture_runs::RunStatus::Completed => return Ok(None),
        _ => when_free(async || Run::begin(&chat, &agent, [said("Work.")]).await).await?,
    };
    Ok(Some(run.drive().await?))
}

async fn go_on_after(chat: Conversation, agent: &Agent) -> Result<Option<Turn>, RunError> {
    match chat.head().await? {
        Some(_) => Ok(None),
        None => {
            let begun = when_free(async || Run::begin(&chat, agent, [said("Work.")]).await);
            let mut run = begun.await?;
            Ok(Some(run.drive().await?))
        }
    }
}

/// All that a store holds of the conversation, a line each thing, by its name.
pub(crate) async fn contents(store: &Arc<dyn Store>) -> BTreeMap<String, String> {
    let chat = open(Arc::clone(store)).await.unwrap();
    let (owner, id) = (chat.owner(), chat.id());
    let mut lines = BTreeMap::new();
    for (branch, path) in paths(&chat).await {
        let mut last = None;
        for node in &path {
            let name = format!("{branch} {:05}", node.depth);
            let mut line = format!("{} {} ", node.id, node.json);
            write!(
                line,
                "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                node.parent,
                node.answers,
                node.response,
                node.audience,
                node.run,
                node.step,
                node.message_id
            )
            .unwrap();
            lines.insert(name, line);
            if let Some(response) = node.response.filter(|response| Some(*response) != last) {
                last = Some(response);
                let record = store.load_response(owner, id, response).await.unwrap();
                lines.insert(
                    format!("{branch} {:05} answer", node.depth),
                    format!("{record:?}"),
                );
            }
        }
        let at = PathEnd::Branch(branch.parse().unwrap());
        let state = store
            .read_state(owner, id, StateRequest::all_entries(at))
            .await
            .unwrap();
        for key in state.root.keys() {
            let value = String::from_utf8_lossy(state.loaded_value(key).unwrap()).into_owned();
            lines.insert(format!("{branch} state {key}"), value);
        }
    }
    let page = store
        .list_entries(owner, ListEntries::default())
        .await
        .unwrap();
    for (scope, entry) in page.entries {
        let value = String::from_utf8_lossy(&entry.value).into_owned();
        lines.insert(format!("beside {scope:?} {}", entry.key), value);
    }
    // How long it took is not what it did.
    lines
        .into_iter()
        .map(|(name, line)| (name, timeless(&line)))
        .collect()
}

fn timeless(line: &str) -> String {
    let mut parts = line.split("\"elapsed_us\":");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("\"elapsed_us\":");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

pub(crate) fn timeless_spent(spent: RunUsage) -> RunUsage {
    RunUsage {
        elapsed: std::time::Duration::ZERO,
        ..spent
    }
}

async fn paths(chat: &Conversation) -> Vec<(String, Vec<Arc<Node>>)> {
    let store = chat.engine().store();
    let refs = chat.refs().await.unwrap();
    let mut paths = Vec::new();
    for branch in refs.branches {
        let request = ReadRequest::whole_path(PathEnd::Branch(branch.name.clone()));
        let page = store
            .read_path(chat.owner(), chat.id(), request)
            .await
            .unwrap();
        paths.push((branch.name.to_string(), page.nodes));
    }
    paths
}

/// Calls whose tool is noted as begun, and that have no output.
pub(crate) async fn begun(store: &Arc<dyn Store>) -> BTreeSet<NodeId> {
    let chat = open(Arc::clone(store)).await.unwrap();
    let mut begun = BTreeSet::new();
    for (branch, path) in paths(&chat).await {
        let at = PathEnd::Branch(branch.parse().unwrap());
        let state = store
            .read_state(chat.owner(), chat.id(), StateRequest::all_entries(at))
            .await
            .unwrap();
        let calls = state.root.keys().filter_map(|key| {
            let (_, call) = key.as_str().split_once("/@tool/")?;
            call.parse::<NodeId>().ok()
        });
        begun.extend(calls.filter(|call| !path.iter().any(|node| node.answers == Some(*call))));
    }
    begun
}

/// Calls that were answered with [`UNKNOWN`].
pub(crate) async fn unknown(store: &Arc<dyn Store>) -> BTreeSet<NodeId> {
    let chat = open(Arc::clone(store)).await.unwrap();
    let paths = paths(&chat).await;
    let nodes = paths.iter().flat_map(|(_, path)| path);
    let told = nodes.filter(|node| node.json.contains(UNKNOWN));
    told.filter_map(|node| node.answers).collect()
}
