//! Clients at full speed: their next request comes before the answer they hold is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contexture::ir::{Item, RequestOptions, Transcript};
use contexture::store_sqlite::SqliteStore;
use contexture::{Engine, Format, lift};
use contexture_upstream_testkit::{
    Gate, Provider, Received, ScriptedProvider, UpstreamResponse as Scripted,
};
use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::own_talk::{
    MODES, Mode, accumulated, body_of, long, output, path_of, text_streamed, tool, user,
};
use super::policies::all;
use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";

/// An agent that runs a tool until the model is done.
pub(super) struct Agent {
    pub(super) format: Format,
    pub(super) mode: Mode,
    pub(super) name: Option<String>,
    /// Time that its tool takes.
    pub(super) pause: Duration,
    pub(super) first: String,
    /// Whether its tool has long outputs.
    pub(super) listing: bool,
}

/// What an agent ends with.
pub(super) struct Run {
    pub(super) history: Vec<Item>,
    pub(super) heads: Vec<HeaderMap>,
}

impl Agent {
    /// Runs its loop and waits for nothing but answers.
    async fn run(&self, proxied: &Proxied) -> Run {
        self.run_across(&[proxied]).await
    }

    /// Runs its loop, each request to the next of the servers.
    pub(super) async fn run_across(&self, servers: &[&Proxied]) -> Run {
        let mut run = Run {
            history: vec![user(&self.first)],
            heads: Vec::new(),
        };
        loop {
            let server = servers[run.heads.len() % servers.len()];
            let said = self.ask(server, &mut run).await;
            let calls: Vec<(String, usize)> = said
                .iter()
                .filter_map(|item| match item {
                    Item::FunctionCall(call) => Some((call.call_id.clone(), run.heads.len())),
                    _ => None,
                })
                .collect();
            run.history.extend(said.into_iter().map(normalized));
            if calls.is_empty() {
                return run;
            }
            tokio::time::sleep(self.pause).await;
            let outputs = calls.iter().map(|(id, round)| {
                let listing = if self.listing { long() } else { String::new() };
                output(id, &format!("output {round}\n{listing}"))
            });
            run.history.extend(outputs);
        }
    }

    async fn ask(&self, proxied: &Proxied, run: &mut Run) -> Vec<Item> {
        let options = RequestOptions {
            max_output_tokens: (self.format == Format::Anthropic).then_some(500),
            ..RequestOptions::default()
        };
        let request = Transcript {
            items: run.history.clone(),
            tools: vec![tool("look")],
            options,
            ..Transcript::default()
        };
        let body = body_of(self.format, self.mode, request);
        let path = path_of(self.format, self.mode);
        let mut request = proxied.stand.request(Method::POST, &path);
        if let Some(name) = &self.name {
            request = request.header("x-contexture-conversation", name);
        }
        let request = request.header("content-type", "application/json");
        let answer = proxied.stand.send(request.body(body.to_string())).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        run.heads.push(answer.headers);
        let document = match self.mode {
            Mode::Whole => answer.text,
            Mode::Streamed => accumulated(self.format, &answer.text),
        };
        lift(self.format, &document).unwrap().transcript.items
    }
}

/// An item as a client's SDK writes it again: arguments are parsed and printed anew.
fn normalized(item: Item) -> Item {
    match item {
        Item::FunctionCall(mut call) => {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            call.arguments = serde_json::to_string_pretty(&arguments).unwrap();
            Item::FunctionCall(call)
        }
        item => item,
    }
}

/// Each run is one conversation with one branch and each item once.
async fn check(proxied: &Proxied, runs: &[Run]) {
    check_across(&[proxied], runs).await;
}

/// The same of runs whose requests went to each of the servers in turn.
pub(super) async fn check_across(servers: &[&Proxied], runs: &[Run]) {
    let proxied = servers[0];
    for run in runs {
        let mut conversations = Vec::new();
        for (head, server) in run.heads.iter().zip(servers.iter().cycle()) {
            let outcome = server.outcome_of(head).await;
            assert_eq!(outcome["raced"], false, "{outcome}");
            assert_eq!(outcome["failed"], Value::Null, "{outcome}");
            conversations.push(outcome["conversation"].as_str().unwrap().to_owned());
        }
        conversations.dedup();
        assert_eq!(conversations.len(), 1, "{conversations:?}");
        let path = format!("/api/v1/conversations/{}", conversations[0]);
        let conversation = proxied.stand.get(&path).await.ok();
        assert_eq!(conversation["branches"], 1, "{conversation}");
        assert_eq!(conversation["items"], run.history.len(), "{conversation}");
    }
    assert_eq!(proxied.conversations().await.len(), runs.len());
}

/// Agents that differ in how long their tool takes, with and without a name, each in a loop of thirty requests.
pub(super) fn tool_loop_agents() -> Vec<Agent> {
    [0, 5, 20, 50]
        .into_iter()
        .flat_map(|pause| [false, true].map(|named| (pause, named)))
        .map(|(pause, named)| Agent {
            format: Format::OpenAiChat,
            mode: if named { Mode::Whole } else { Mode::Streamed },
            name: named.then(|| format!("agent-{pause}")),
            pause: Duration::from_millis(pause),
            first: format!("{pause} {named}\nupstream: again 29 look {{\"at\":\"x\"}}"),
            listing: false,
        })
        .collect()
}

/// A server over a database in a file, which takes longer to write than memory.
async fn over_file(provider: impl Provider, config: &str) -> (Proxied, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fast.db");
    let engine = Engine::new(Arc::new(SqliteStore::open(&file).unwrap()));
    (Proxied::to(provider, engine, config).await, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tool_loop_at_full_speed_is_one_conversation() {
    let configs = ["", &all("limit_tokens = 100000\n")];
    for config in configs {
        let (proxied, _folder) = over_file(ScriptedProvider::default(), config).await;
        let agents = tool_loop_agents();
        let runs = join_all(agents.iter().map(|agent| agent.run(&proxied))).await;
        assert!(runs.iter().all(|run| run.heads.len() == 30));
        check(&proxied, &runs).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_format_is_one_conversation_at_full_speed() {
    // The second offers tools of the server's own, so that the answer comes from its loop.
    let configs = ["", &all("preview = 1000\npays = \"fits\"\n")];
    for config in configs {
        let (proxied, _folder) = over_file(ScriptedProvider::default(), config).await;
        let agents: Vec<Agent> = text_streamed()
            .flat_map(|format| MODES.map(|mode| (format, mode)))
            .flat_map(|(format, mode)| [false, true].map(|named| (format, mode, named)))
            .map(|(format, mode, named)| Agent {
                format,
                mode,
                name: named.then(|| format!("{format}-{mode:?}")),
                pause: Duration::ZERO,
                first: format!(
                    "{format} {mode:?} {named}\nupstream: again 5 look {{\"at\":\"x\"}}"
                ),
                listing: true,
            })
            .collect();
        let mut runs = Vec::new();
        // One after the other: nothing but the loop itself is in its own way.
        for agent in &agents {
            runs.push(agent.run(&proxied).await);
        }
        check(&proxied, &runs).await;
    }
}

/// A model that never says the same twice: each answer calls a tool, up to a number of outputs in the history.
fn unique_answers(rounds: usize, delay: Duration) -> impl Provider {
    let count = AtomicUsize::new(0);
    move |received: &Received| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let request = received.json();
        let messages = request["messages"].as_array().unwrap();
        let outputs = messages.iter().filter(|one| one["role"] == "tool").count();
        let call = json!([{"id": format!("call_{number}"), "type": "function",
            "function": {"name": "look", "arguments": format!("{{\"at\":{number}}}")}}]);
        let message = match outputs < rounds {
            true => json!({"role": "assistant", "content": null, "tool_calls": call}),
            false => json!({"role": "assistant", "content": format!("done {number}")}),
        };
        let document = json!({"id": format!("c{number}"), "object": "chat.completion", "created": 1, "model": "gpt-4.1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        Scripted::json(200, &document).delayed_by(delay)
    }
}

/// 99 of 100 waits are no longer than this many milliseconds.
async fn longest_wait(proxied: &Proxied, runs: &[Run]) -> u64 {
    let mut waits = Vec::new();
    for head in runs.iter().flat_map(|run| &run.heads) {
        let outcome = proxied.outcome_of(head).await;
        waits.push(outcome["waited_ms"].as_u64().unwrap());
    }
    waits.sort_unstable();
    waits[waits.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn agents_side_by_side_keep_their_conversations() {
    let is_soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (agents, rounds) = if is_soak { (200, 29) } else { (40, 4) };
    let provider = unique_answers(rounds, Duration::from_millis(100));
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    // They begin with the same words, under one key and without names.
    let agents: Vec<Agent> = (0..agents)
        .map(|_| Agent {
            format: Format::OpenAiChat,
            mode: Mode::Whole,
            name: None,
            pause: Duration::ZERO,
            first: "Mend the failing test.".to_owned(),
            listing: false,
        })
        .collect();
    let runs = join_all(agents.iter().map(|agent| agent.run(&proxied))).await;
    check(&proxied, &runs).await;
    let wait = longest_wait(&proxied, &runs).await;
    assert!(!is_soak || wait < 20, "p99 of the wait: {wait} ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_twin_nor_retry_waits_for_a_running_answer() {
    let gate = Gate::new_closed();
    let provider = {
        let gate = gate.clone();
        let count = AtomicUsize::new(0);
        move |received: &Received| match received.json()["stream"].as_bool() {
            Some(true) => {
                let word = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1",
                    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "slow "}, "finish_reason": null}]});
                let events = (0..3).map(|_| format!("data: {word}\n\n"));
                Scripted::event_stream(events).gated_by(&gate)
            }
            _ => {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let message = json!({"role": "assistant", "content": format!("answer {number}")});
                Scripted::json(
                    200,
                    &json!({"id": format!("c{number}"), "object": "chat.completion", "created": 1,
                    "model": "gpt-4.1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}),
                )
            }
        }
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let mut streamed = chat(&[says("hello")]);
    streamed["stream"] = true.into();
    let request = proxied.stand.request(Method::POST, CHAT);
    let request = request
        .header("content-type", "application/json")
        .header("x-contexture-wait", "ingest");
    let running = request.body(streamed.to_string()).send().await.unwrap();
    // The same words from somebody else, and again, and on from the answer.
    let mut history = vec![says("hello")];
    for _ in 0..3 {
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(outcome["waited_ms"], 0, "{outcome}");
        assert_eq!(outcome["raced"], false, "{outcome}");
        history.extend([said(&answer), says("and?")]);
    }
    assert_eq!(proxied.conversations().await.len(), 2);
    gate.release_chunks(3);
    running.bytes().await.unwrap();
}
