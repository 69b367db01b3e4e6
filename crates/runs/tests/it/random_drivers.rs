//! Processes that drive one run, and are killed, frozen and woken at moments of a seed: whoever wins, the run comes to its end
//! once, no tool of it begins twice, and nothing that was paid for is lost by those that lived.
//!
//! A process is an engine on a runtime of its own, as in `ownership`. A process that is not polled is frozen; one that is dropped
//! is killed. Each process tries to resume the run until it has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture_compile::Target;
use contexture_engine::{Conversation, Engine};
use contexture_ir::{Item, Message, Output, Raw, Role, RunId};
use contexture_layers::Rerun;
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse};
use contexture_runs::{
    Agent, ApprovalDecision, Run, RunError, RunStatus, SubAgent, ToolBox, ToolCall, ToolOptions,
    ToolOutput, TurnEnd, list_runs, store_decision,
};
use contexture_store::{MemoryStore, PathEnd, ReadRequest, Store};
use contexture_store_testkit::{Chances, Faulty, test_seed};
use contexture_tools::{Policy, Tool};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::test_support::{calling, saying};

/// Answers by what was said before, after letting others go first.
#[derive(Debug)]
struct Slow {
    answers: fn(&str) -> ModelResponse,
    answered: Arc<AtomicU32>,
}

#[async_trait::async_trait]
impl Model for Slow {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        pause(3).await;
        let answer = (self.answers)(&request.payload);
        self.answered.fetch_add(1, Ordering::SeqCst);
        // A provider never gives two answers one id.
        let number = self.answered.load(Ordering::SeqCst);
        let body = answer
            .body
            .replace("chatcmpl-1", &format!("chatcmpl-{number}"));
        Ok(ModelResponse::new(body))
    }
}

async fn pause(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// What the tools of all processes did.
#[derive(Clone, Default)]
struct Tally {
    /// How often each tool began.
    begun: Arc<Mutex<BTreeMap<&'static str, u32>>>,
    answered: Arc<AtomicU32>,
}

impl Tally {
    fn times(&self, tool: &str) -> u32 {
        self.begun.lock().unwrap().get(tool).copied().unwrap_or(0)
    }

    fn tools(&self, names: &[&'static str], policy: Policy) -> ToolBox {
        let mut tools = ToolBox::new(policy);
        for name in names.iter().copied() {
            let tally = self.clone();
            let handler = move |_: ToolCall| {
                let tally = tally.clone();
                async move {
                    *tally.begun.lock().unwrap().entry(name).or_default() += 1;
                    pause(5).await;
                    Ok(ToolOutput::from(format!("{name} is done")))
                }
            };
            let options = ToolOptions {
                rerun: Rerun::Unknown,
                timeout: None,
                ..ToolOptions::default()
            };
            let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
            let tool = Tool::function(name, "Does it once.", schema);
            tools.add_tool_with(tool, options, handler).unwrap();
        }
        tools
    }

    fn model(&self, answers: fn(&str) -> ModelResponse) -> Arc<Slow> {
        Arc::new(Slow {
            answers,
            answered: Arc::clone(&self.answered),
        })
    }

    /// A desk that refunds when it is allowed, and has a clerk who sends a mail.
    fn desk(&self) -> Agent {
        let clerk = Agent::new(
            "clerk",
            self.model(|said| match said.contains(r#""tool_call_id":"m""#) {
                false => calling(&[("m", "send_mail", "{}")]),
                true => saying("The mail is sent."),
            }),
            Target::openai_chat("gpt-4o"),
        )
        .with_tools(self.tools(&["send_mail"], Policy::default()))
        .unwrap();
        let desk = self.model(|said| {
            let done = |id: &str| said.contains(&format!(r#""tool_call_id":"{id}""#));
            match (done("l"), done("r"), done("c")) {
                (false, ..) => calling(&[("l", "look_up", "{}")]),
                (_, false, _) => calling(&[("r", "refund", "{}")]),
                (_, _, false) => calling(&[("c", "clerk", r#"{"task":"Send the mail."}"#)]),
                _ => saying("Refunded, and a mail is sent."),
            }
        });
        Agent::new("desk", desk, Target::openai_chat("gpt-4o"))
            .with_tools(self.tools(&["look_up", "refund"], Policy::default().ask("refund")))
            .unwrap()
            .with_sub_agent("clerk", SubAgent::new(clerk, "Sends mails."))
            .unwrap()
    }
}

struct Process {
    runtime: Runtime,
    driving: JoinHandle<Vec<RunError>>,
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

async fn open(store: Arc<dyn Store>) -> Conversation {
    Engine::new(store).conversation("c").open().await.unwrap()
}

impl Process {
    /// A process that drives the run until it has ended, deciding whatever waits. Returns what it was told beside that.
    fn start(store: &Arc<dyn Store>, seed: u64, id: RunId, agent: Agent) -> Self {
        let runtime = runtime();
        // Each call of the store lets the others go first, at times.
        let chances = Chances {
            delay: 500,
            ..Chances::default()
        };
        let store: Arc<dyn Store> = Arc::new(Faulty::with_seed(Arc::clone(store), seed, chances));
        let driving = runtime.spawn(drive_to_end(store, id, agent));
        Self { runtime, driving }
    }

    /// Lets it work for a while, in which its clock may go on as well.
    fn poll(&self, turns: u32, clock: Duration) {
        self.runtime.block_on(async {
            pause(turns).await;
            if !clock.is_zero() {
                tokio::time::advance(clock).await;
            }
        });
    }
}

async fn drive_to_end(store: Arc<dyn Store>, id: RunId, agent: Agent) -> Vec<RunError> {
    let chat = open(store).await;
    let mut told = Vec::new();
    loop {
        let driven = async { Run::resume(&chat, id, &agent).await?.drive().await };
        match driven.await {
            Ok(turn) => match &turn.end {
                TurnEnd::Waiting { calls } => {
                    for call in calls {
                        match store_decision(&chat, id, *call, ApprovalDecision::Allow).await {
                            // Another process was faster, with the decision or with the call.
                            Ok(_) | Err(RunError::NotWaiting { .. }) => {}
                            Err(error) => unreachable!("{error:?}"),
                        }
                    }
                }
                _ => return told,
            },
            Err(RunError::Busy { .. }) => tokio::time::sleep(Duration::from_secs(1)).await,
            // It has ended.
            Err(RunError::ItemMismatch { .. }) => return told,
            Err(error) => {
                assert_eq!(error.kind(), "superseded", "{error:?}");
                told.push(error);
            }
        }
    }
}

/// One case; returns how often a process was killed and how often one was told that it is superseded.
fn drive_with_seed(seed: u64) -> (u32, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let tally = Tally::default();
    let agent = tally.desk();
    let id = runtime().block_on(async {
        let chat = open(Arc::clone(&store)).await;
        let said = Item::Message(Message::text(Role::User, "Refund A-7."));
        Run::begin(&chat, &agent, [said]).await.unwrap().id()
    });
    let start = |random: &mut fastrand::Rng| {
        Process::start(&store, random.u64(..u64::MAX), id, agent.clone())
    };
    let mut processes: Vec<Process> = (0..3).map(|_| start(&mut random)).collect();
    let (mut killed, mut told) = (0, Vec::new());
    let mut rounds = 0;
    while !processes.is_empty() {
        rounds += 1;
        assert!(rounds < 20_000, "it comes to no end");
        let at = random.usize(..processes.len());
        let turns = random.u32(..12) + 1;
        // A clock that goes on makes those that are not polled look dead.
        let clock = match random.u64(..8) {
            0 => Duration::from_secs(random.u64(..12)),
            _ => Duration::ZERO,
        };
        processes[at].poll(turns, clock);
        if processes[at].driving.is_finished() {
            let ended = processes.swap_remove(at);
            told.extend(ended.runtime.block_on(ended.driving).unwrap());
        } else if killed < 4 && random.u64(..60) == 0 {
            processes[at] = start(&mut random);
            killed += 1;
        }
    }
    check_laws(seed, &store, &tally, id, (killed, &told));
    (killed, told.len())
}

fn check_laws(
    seed: u64,
    store: &Arc<dyn Store>,
    tally: &Tally,
    id: RunId,
    (killed, told): (u32, &[RunError]),
) {
    for tool in ["look_up", "refund", "send_mail"] {
        assert!(
            tally.times(tool) <= 1,
            "seed {seed}: {tool} {}",
            tally.times(tool)
        );
    }
    runtime().block_on(async {
        let chat = open(Arc::clone(store)).await;
        let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
        assert_eq!(listed.len(), 2, "seed {seed}: {listed:?}");
        for entry in &listed {
            assert_eq!(entry.status, RunStatus::Completed, "seed {seed}: {entry:?}");
        }
        let root = listed.iter().find(|entry| entry.id() == Some(id)).unwrap();
        let counted = root.usage.unwrap().responses;
        let paid = u64::from(tally.answered.load(Ordering::SeqCst));
        // Who was killed could not store what had just come; who was superseded may have stored it behind the end.
        let unknown = u64::from(killed) + told.len() as u64;
        assert!(
            counted <= paid && counted + unknown >= paid,
            "seed {seed}: {counted} of {paid}, {unknown} unknown"
        );
        let mut outputs = BTreeMap::new();
        for branch in chat.refs().await.unwrap().branches {
            let request = ReadRequest::whole_path(PathEnd::Branch(branch.name));
            let page = store
                .read_path(chat.owner(), chat.id(), request)
                .await
                .unwrap();
            for node in page.nodes {
                if let Item::FunctionCallOutput(output) = Item::parse(&node.json).unwrap() {
                    outputs.insert(node.answers.unwrap(), output);
                }
            }
        }
        // Each call has one output, which says what became of it.
        for output in outputs.values() {
            let Output::Text(text) = &output.output else {
                unreachable!("seed {seed}: {output:?}");
            };
            let known = ["is done", "nobody knows", "The mail is sent."];
            assert!(
                known.iter().any(|word| text.contains(word)),
                "seed {seed}: {text}"
            );
        }
        assert_eq!(outputs.len(), 4, "seed {seed}");
    });
}

#[test]
fn whoever_drives_it_and_dies_the_run_ends_once() {
    let seeds = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 200,
        None => 20,
    };
    let first = test_seed();
    let (mut killed, mut superseded) = (0, 0);
    for n in 0..seeds {
        let (kills, told) = drive_with_seed(first.wrapping_add(n));
        killed += kills;
        superseded += told;
    }
    println!("{seeds} seeds from {first}: {killed} times killed, {superseded} times superseded");
    assert!(killed > 0 && superseded > 0);
}
