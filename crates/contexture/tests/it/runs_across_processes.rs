//! Processes of the operating system that drive one run over SQLite and PostgreSQL, and are killed at moments of a seed.
//!
//! Tasks of one process that drive one run are tested on both as well.
//!
//! Each of two children goes on with the run until it has ended, deciding whatever waits; the parent kills them and starts others.
//! Whatever is killed, no tool begins twice and the run comes to its end. Tools note in a file that they began, which survives.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use contexture::ir::{Item, Message, Raw, Role};
use contexture::models::{ModelResponse, ScriptedModel, text_response};
use contexture::runs::{
    ApprovalDecision, Run, RunError, RunStatus, SubAgent, TurnEnd, list_runs, store_decision,
};
use contexture::store::Store;
use contexture::tools::{Policy, Tool};
use contexture::{Agent, Conversation, Engine, Format, Target, ToolBox, ToolCall, ToolOutput};
use contexture_store_postgres::{PostgresStore, migrate};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::test_seed;

const ADDRESS: &str = "CONTEXTURE_TEST_RUN_DATABASE";
const OWNER: &str = "CONTEXTURE_TEST_RUN_OWNER";
const NOTES: &str = "CONTEXTURE_TEST_RUN_NOTES";
const POSTGRES: &str = "CONTEXTURE_TEST_POSTGRES";

/// How long a tool takes, so that processes are killed in the midst of it.
const WORK: Duration = Duration::from_millis(30);

fn calling(id: &str, tool: &str, arguments: &str) -> ModelResponse {
    let arguments = arguments.replace('"', "\\\"");
    ModelResponse::new(format!(
        r#"{{"id":"1","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":"{arguments}"}}}}]}},"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}}}"#
    ))
}

fn saying(text: &str) -> ModelResponse {
    ModelResponse::new(text_response(Format::OpenAiChat, text))
}

/// A tool box whose tools note that they began.
fn tools(names: &[&'static str], policy: Policy, notes: &Path) -> ToolBox {
    let mut tools = ToolBox::new(policy);
    for name in names.iter().copied() {
        let notes = notes.to_owned();
        let handler = move |_: ToolCall| {
            let notes = notes.clone();
            async move {
                let mut file = OpenOptions::new().append(true).open(notes).unwrap();
                writeln!(file, "{name}").unwrap();
                tokio::time::sleep(WORK).await;
                Ok(ToolOutput::from(format!("{name} is done")))
            }
        };
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let tool = Tool::function(name, "Does it once.", schema);
        tools.add_tool(tool, handler).unwrap();
    }
    tools
}

/// A desk that refunds when it is allowed, and has a clerk who sends a mail.
fn desk(notes: &Path) -> Agent {
    let target = || Target::openai_chat("gpt-4o");
    let clerk = ScriptedModel::with_fn(|request| {
        Ok(match request.payload.contains(r#""tool_call_id":"m""#) {
            false => calling("m", "send_mail", "{}"),
            true => saying("The mail is sent."),
        })
    });
    let clerk = Agent::new("clerk", Arc::new(clerk), target())
        .with_tools(tools(&["send_mail"], Policy::default(), notes))
        .unwrap();
    let model = ScriptedModel::with_fn(|request| {
        let done = |id: &str| {
            request
                .payload
                .contains(&format!(r#""tool_call_id":"{id}""#))
        };
        Ok(match (done("l"), done("r"), done("c")) {
            (false, ..) => calling("l", "look_up", "{}"),
            (_, false, _) => calling("r", "refund", "{}"),
            (_, _, false) => calling("c", "clerk", r#"{"task":"Send the mail."}"#),
            _ => saying("Refunded, and a mail is sent."),
        })
    });
    let policy = Policy::default().ask("refund");
    Agent::new("desk", Arc::new(model), target())
        .with_tools(tools(&["look_up", "refund"], policy, notes))
        .unwrap()
        .with_sub_agent("clerk", SubAgent::new(clerk, "Sends mails."))
        .unwrap()
}

/// A place for one run: a database, an owner in it, and a file for notes.
struct Place {
    address: String,
    owner: String,
    notes: PathBuf,
}

impl Place {
    async fn open(&self) -> Conversation {
        let store: Arc<dyn Store> = match self.address.starts_with("postgres:") {
            true => Arc::new(PostgresStore::open(&self.address).await.unwrap()),
            false => Arc::new(SqliteStore::open(&self.address).unwrap()),
        };
        let engine = Engine::new(store);
        let chat = engine.conversation("c").owner(&self.owner);
        chat.open().await.unwrap()
    }

    fn start(&self) -> Child {
        let test = "runs_across_processes::drives_until_it_is_killed";
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--test-threads=1"])
            .env(ADDRESS, &self.address)
            .env(OWNER, &self.owner)
            .env(NOTES, &self.notes)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn began(&self, tool: &str) -> usize {
        let notes = std::fs::read_to_string(&self.notes).unwrap();
        notes.lines().filter(|line| *line == tool).count()
    }
}

/// The child: goes on with the run until it has ended.
#[tokio::test]
#[ignore = "the process that the tests of this file start and kill"]
async fn drives_until_it_is_killed() {
    let (Ok(address), Ok(owner), Ok(notes)) = (
        std::env::var(ADDRESS),
        std::env::var(OWNER),
        std::env::var(NOTES),
    ) else {
        return;
    };
    let place = Place {
        address,
        owner,
        notes: notes.into(),
    };
    let chat = place.open().await;
    let agent = desk(&place.notes);
    loop {
        let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
        let root = listed.iter().find(|entry| entry.parent.is_none()).unwrap();
        if !root.status.is_open() {
            return;
        }
        let id = root.id().unwrap();
        let driven = async { Run::resume(&chat, id, &agent).await?.drive().await };
        match driven.await {
            Ok(turn) => {
                let TurnEnd::Waiting { calls } = turn.end else {
                    return;
                };
                for call in calls {
                    match store_decision(&chat, id, call, ApprovalDecision::Allow).await {
                        Ok(_) | Err(RunError::NotWaiting { .. }) => {}
                        Err(error) => unreachable!("{error:?}"),
                    }
                }
            }
            Err(RunError::ItemMismatch { .. }) => return,
            Err(RunError::Busy { .. } | RunError::Superseded { .. }) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => unreachable!("{error:?}"),
        }
    }
}

/// Drives one run with two processes at a time, of which at most `kills` are killed; returns how many were.
async fn drive_with_kills(place: &Place, seed: u64, kills: u32) -> u32 {
    let mut random = fastrand::Rng::with_seed(seed);
    std::fs::write(&place.notes, "").unwrap();
    let chat = place.open().await;
    let said = Item::Message(Message::text(Role::User, "Refund A-7."));
    let run = Run::begin(&chat, &desk(&place.notes), [said])
        .await
        .unwrap();
    let id = run.id();
    // It is released with the next beat of this process; until then the children are told that it is busy.
    drop(run);
    let mut children = [place.start(), place.start()];
    let mut killed = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(20 + random.u64(..150))).await;
        let at = random.usize(..2);
        if let Some(status) = children[at].try_wait().unwrap() {
            assert!(status.success(), "seed {seed}: {status}");
            break;
        }
        if killed < kills {
            children[at].kill().unwrap();
            children[at].wait().unwrap();
            children[at] = place.start();
            killed += 1;
        }
    }
    for mut child in children {
        let status = child.wait().unwrap();
        assert!(status.success(), "seed {seed}: {status}");
    }
    for tool in ["look_up", "refund", "send_mail"] {
        let began = place.began(tool);
        assert!(began <= 1, "seed {seed}: {tool} began {began} times");
    }
    let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    let of_tree: Vec<_> = listed.iter().map(|entry| entry.status).collect();
    assert_eq!(
        of_tree,
        [RunStatus::Completed; 2],
        "seed {seed}: {listed:?}"
    );
    let root = listed.iter().find(|entry| entry.id() == Some(id)).unwrap();
    assert_eq!(
        root.result.as_deref(),
        Some("Refunded, and a mail is sent.")
    );
    // Six answers, and those of processes that lost a race for the same step.
    assert!(
        root.usage.unwrap().responses >= 6,
        "seed {seed}: {:?}",
        root.usage
    );
    killed
}

/// What one driver of the own process met beside the end of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Refusals {
    busy: u32,
    wrong_agent: u32,
    decided_otherwise: u32,
    dropped: u32,
}

/// Drives the run of one process to its end, beside others of the same engine. At times it comes with the wrong agent, drops the run
/// in the midst of a step, or decides otherwise than the others.
async fn drive_beside_others(
    chat: &Conversation,
    agents: (&Agent, &Agent),
    id: contexture::ir::RunId,
    seed: u64,
) -> Refusals {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut met = Refusals::default();
    loop {
        let (right, wrong) = agents;
        let agent = if random.u8(..5) == 0 { wrong } else { right };
        // Boxed: the futures of three drivers are large for the stack of a test's thread.
        let mut run = match Box::pin(Run::resume(chat, id, agent)).await {
            Ok(run) => run,
            Err(RunError::Busy { .. }) => {
                met.busy += 1;
                tokio::time::sleep(Duration::from_millis(random.u64(..8))).await;
                continue;
            }
            Err(RunError::Agent(_)) => {
                met.wrong_agent += 1;
                continue;
            }
            // It has ended.
            Err(RunError::ItemMismatch { .. }) => return met,
            Err(error) => unreachable!("seed {seed}: {error:?}"),
        };
        assert_eq!(agent.name(), "desk", "seed {seed}");
        let driven = match random.u8(..3) {
            // As a client that leaves: the future is dropped wherever it is, often in the child.
            0 => {
                let patience = Duration::from_millis(random.u64(..120));
                let Ok(driven) = tokio::time::timeout(patience, Box::pin(run.drive())).await else {
                    met.dropped += 1;
                    continue;
                };
                driven
            }
            _ => Box::pin(run.drive()).await,
        };
        let TurnEnd::Waiting { calls } = driven.unwrap().end else {
            return met;
        };
        for call in calls {
            let decision = match random.bool() {
                true => ApprovalDecision::Allow,
                false => ApprovalDecision::Deny {
                    reason: "not today".to_owned(),
                },
            };
            match store_decision(chat, id, call, decision).await {
                Ok(_) | Err(RunError::NotWaiting { .. }) => {}
                Err(RunError::AlreadyDecided { .. }) => met.decided_otherwise += 1,
                Err(error) => unreachable!("seed {seed}: {error:?}"),
            }
        }
    }
}

/// One run that three tasks of one process drive at once; returns what they met, together.
async fn drive_in_process(chat: &Conversation, place: &Place, seed: u64) -> Refusals {
    std::fs::write(&place.notes, "").unwrap();
    let desk = desk(&place.notes);
    let other = ScriptedModel::with_fn(|_| unreachable!("it is never asked"));
    let other = Agent::new("other", Arc::new(other), Target::openai_chat("gpt-4o"));
    let said = Item::Message(Message::text(Role::User, "Refund A-7."));
    let run = Run::begin(chat, &desk, [said]).await.unwrap();
    let id = run.id();
    drop(run);
    let agents = (&desk, &other);
    let drive = |n: u64| {
        let seed = seed.wrapping_mul(3).wrapping_add(n);
        Box::pin(drive_beside_others(chat, agents, id, seed))
    };
    let (a, b, c) = tokio::join!(drive(0), drive(1), drive(2));
    let listed = list_runs(chat.engine(), chat.owner(), Some(chat))
        .await
        .unwrap();
    let root = listed.iter().find(|entry| entry.id() == Some(id)).unwrap();
    let of_tree: Vec<_> = listed.iter().map(|entry| entry.status).collect();
    assert_eq!(
        of_tree,
        [RunStatus::Completed; 2],
        "seed {seed}: {listed:?}"
    );
    // A refund only where the decision that holds allows it, and never a second one.
    let (looked, refunded) = (place.began("look_up"), place.began("refund"));
    assert!(
        looked <= 1 && refunded <= 1,
        "seed {seed}: {looked}, {refunded}"
    );
    assert!(place.began("send_mail") <= 1, "seed {seed}");
    // What a dropped driver had asked is paid and lost; everything else is counted, at the price of each answer.
    let usage = root.usage.unwrap();
    assert!(usage.responses >= 6, "seed {seed}: {usage}");
    let input = usage.tokens.input.unwrap_or_default();
    assert!(input >= 4 * 10, "seed {seed}: {usage}");
    let cost = usage.cost.unwrap();
    let price = contexture::runs::Money::from_pico_dollars(
        u128::from(input) * 2_500_000 + u128::from(usage.tokens.output.unwrap()) * 10_000_000,
    );
    assert_eq!(cost, price, "seed {seed}: {usage}");
    Refusals {
        busy: a.busy + b.busy + c.busy,
        wrong_agent: a.wrong_agent + b.wrong_agent + c.wrong_agent,
        decided_otherwise: a.decided_otherwise + b.decided_otherwise + c.decided_otherwise,
        dropped: a.dropped + b.dropped + c.dropped,
    }
}

async fn drive_seeds_in_process(address: &str, notes: PathBuf) {
    let (seeds, _) = measure();
    let first = test_seed();
    let mut met = Refusals::default();
    for n in 0..seeds {
        let place = Place {
            address: address.to_owned(),
            // One database for all; the owners have nothing of each other.
            owner: format!("in-process-{first}-{n}"),
            notes: notes.clone(),
        };
        let chat = place.open().await;
        let one = drive_in_process(&chat, &place, first.wrapping_add(n)).await;
        met.busy += one.busy;
        met.wrong_agent += one.wrong_agent;
        met.decided_otherwise += one.decided_otherwise;
        met.dropped += one.dropped;
    }
    #[expect(clippy::print_stdout, reason = "for whoever reads what a soak met")]
    {
        println!("{seeds} seeds from {first}: {met:?}");
    }
    assert!(met.busy > 0);
}

#[tokio::test]
async fn drivers_of_one_process_on_sqlite_are_one_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let address = directory.path().join("in-process.db");
    let notes = directory.path().join("notes");
    drive_seeds_in_process(&address.display().to_string(), notes).await;
}

/// The number of seeds, and how often one run is killed at most.
fn measure() -> (u64, u32) {
    match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => (200, 4),
        None => (2, 3),
    }
}

#[tokio::test]
async fn killed_drivers_on_sqlite_leave_one_run() {
    let (seeds, kills) = measure();
    let first = test_seed();
    let directory = tempfile::tempdir().unwrap();
    for n in 0..seeds {
        let place = Place {
            address: format!("{}", directory.path().join(format!("{n}.db")).display()),
            owner: "ada".to_owned(),
            notes: directory.path().join(format!("{n}.txt")),
        };
        drive_with_kills(&place, first.wrapping_add(n), kills).await;
    }
}

#[tokio::test]
async fn killed_drivers_on_postgres_leave_one_run() {
    let address = postgres_address().await;
    let (seeds, kills) = measure();
    let first = test_seed();
    let directory = tempfile::tempdir().unwrap();
    for n in 0..seeds {
        let place = Place {
            address: address.clone(),
            // One database for all; the owners have nothing of each other.
            owner: format!("runs-{first}-{n}"),
            notes: directory.path().join(format!("{n}.txt")),
        };
        drive_with_kills(&place, first.wrapping_add(n), kills).await;
    }
}

#[tokio::test]
async fn drivers_of_one_process_on_postgres_are_one_at_a_time() {
    let address = postgres_address().await;
    let directory = tempfile::tempdir().unwrap();
    drive_seeds_in_process(&address, directory.path().join("notes")).await;
}

/// A database of the server that tests use, ready to be opened.
async fn postgres_address() -> String {
    let server = std::env::var(POSTGRES).unwrap_or_else(|_| {
        unreachable!(
            "this test needs a PostgreSQL server: run `cargo xtask test -p contexture`, which starts one, or name one in \
             {POSTGRES}=postgres://superuser:password@host:port/postgres"
        )
    });
    let (start, _) = server.rsplit_once('/').unwrap();
    let address = format!("{start}/postgres?sslmode=disable");
    migrate(&address).await.unwrap();
    address
}
