//! Who drives a run: one process at a time, and what the others are told.
//!
//! A *process* here is an engine on a runtime of its own, over a store that it shares. While its runtime is not polled it is a
//! process that is frozen: it gives no sign of life, and goes on as if nothing had happened once it is polled again.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use contexture_compile::Target;
use contexture_engine::{Conversation, Engine};
use contexture_ir::{Item, Message, NodeId, Output, Raw, Role, RunId};
use contexture_layers::Rerun;
use contexture_models::ScriptedModel;
use contexture_runs::{
    Agent, AgentError, ApprovalDecision, ChildHistory, Run, RunError, RunStatus, SubAgent, ToolBox,
    ToolCall, ToolOptions, ToolOutput, Turn, TurnEnd, UnfinishedRun, abandon_run, list_runs,
    open_calls, recover_runs, run_turn_with_text, store_decision,
};
use contexture_store::{MemoryStore, PathEnd, ReadRequest, Store};
use contexture_store_sqlite::SqliteStore;
use contexture_tools::{Policy, Tool};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore};

use crate::test_support::{calling, saying, transcript};

/// Longer than a process may give no sign of life.
const DEAD: Duration = Duration::from_secs(11);

/// A process: a runtime and its view of a store.
struct Process {
    runtime: Runtime,
    chat: Conversation,
}

impl Process {
    fn new(store: &Arc<dyn Store>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let store = Arc::clone(store);
        let chat = runtime.block_on(async {
            let engine = Engine::new(store);
            engine.conversation("c").open().await.unwrap()
        });
        Self { runtime, chat }
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Resumes the run, after it has looked long enough at a driver that gives no sign of life.
    fn take_over(&self, id: RunId, agent: &Agent) -> Run {
        self.run(async {
            let busy = Run::resume(&self.chat, id, agent).await;
            assert!(matches!(busy, Err(RunError::Busy { .. })), "{busy:?}");
            tokio::time::sleep(DEAD).await;
            Run::resume(&self.chat, id, agent).await.unwrap()
        })
    }
}

fn said(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

/// What `pay` waits for, and how often it began.
#[derive(Clone)]
struct Till {
    begun: Arc<AtomicU32>,
    entered: Arc<Notify>,
    open: Arc<Semaphore>,
}

impl Till {
    fn closed() -> Self {
        Self {
            begun: Arc::default(),
            entered: Arc::default(),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    fn open() -> Self {
        let till = Self::closed();
        till.open.add_permits(100);
        till
    }

    fn times(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }

    /// `pay`, which takes money: it begins at once and ends when the till is open.
    fn tools(&self, policy: Policy, rerun: Rerun) -> ToolBox {
        let mut tools = ToolBox::new(policy);
        let till = self.clone();
        let pay = move |_: ToolCall| {
            let till = till.clone();
            async move {
                till.begun.fetch_add(1, Ordering::SeqCst);
                till.entered.notify_one();
                till.open.acquire().await.unwrap().forget();
                Ok(ToolOutput::from("paid"))
            }
        };
        let options = ToolOptions {
            rerun,
            timeout: None,
            ..ToolOptions::default()
        };
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        tools
            .add_tool_with(Tool::function("pay", "Pays.", schema), options, pay)
            .unwrap();
        tools
    }
}

/// A model that calls `pay` whenever it is told something, and then says what the tool told it.
fn payer() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::with_fn(|request| {
        let last = request.payload.rfind(r#""role":""#);
        let last = last.and_then(|at| request.payload.get(at..)).unwrap();
        let told = |word: &str| last.contains(word);
        Ok(match last.starts_with(r#""role":"user""#) {
            true => calling(&[("p", "pay", "{}")]),
            false if told("nobody knows") => saying("Nobody knows."),
            false if told("\"paid\"") => saying("It is paid."),
            false => saying("It is not paid."),
        })
    }))
}

fn cashier(tools: ToolBox) -> Agent {
    Agent::new("cashier", payer(), Target::openai_chat("gpt-4o"))
        .with_tools(tools)
        .unwrap()
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

async fn begin(chat: &Conversation, agent: &Agent) -> RunId {
    let run = Run::begin(chat, agent, [said("Pay.")]).await.unwrap();
    run.id()
}

/// The calls that a turn waits for.
fn waits_for(turn: &Turn) -> &[NodeId] {
    match &turn.end {
        TurnEnd::Waiting { calls } => calls,
        end => unreachable!("{end:?}"),
    }
}

async fn status_of(chat: &Conversation, id: RunId) -> RunStatus {
    let listed = list_runs(chat.engine(), chat.owner(), Some(chat)).await;
    let listed = listed.unwrap().into_iter();
    let mut same = listed.filter(|entry| entry.id() == Some(id));
    same.next().unwrap().status
}

#[tokio::test]
async fn of_two_that_resume_a_run_at_once_one_drives_it() {
    let engine = Engine::in_memory();
    let chat = engine.conversation("c").open().await.unwrap();
    let till = Till::closed();
    let agent = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let id = begin(&chat, &agent).await;
    let go = || async { Run::resume(&chat, id, &agent).await?.drive().await };
    let open = async {
        till.entered.notified().await;
        let late = go().await;
        till.open.add_permits(1);
        late
    };
    let (a, b) = tokio::join!(go(), open);
    let (turn, told) = match (a, b) {
        (Ok(turn), Err(told)) | (Err(told), Ok(turn)) => (turn, told),
        both => unreachable!("{both:?}"),
    };
    assert_eq!(turn.text, "It is paid.");
    assert_eq!(till.times(), 1);
    assert_eq!(told.kind(), "busy");
    assert!(told.is_retryable());
}

#[test]
fn a_run_that_another_process_drives_is_left_to_it() {
    let store = memory();
    let (one, other) = (Process::new(&store), Process::new(&store));
    let till = Till::closed();
    let agent = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let mut run = one.run(async { Run::begin(&one.chat, &agent, [said("Pay.")]).await.unwrap() });
    let id = run.id();
    let entered = Arc::clone(&till.entered);
    let driving = one.runtime.spawn(async move { run.drive().await });
    one.run(entered.notified());
    // It works, and it lives: its number grows.
    for _ in 0..3 {
        one.run(async { tokio::time::sleep(DEAD).await });
        let busy = other.run(async {
            let first = Run::resume(&other.chat, id, &agent).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            first
        });
        match busy {
            Err(RunError::Busy {
                dead_in: Some(_),
                branch,
                ..
            }) => assert_eq!(branch.as_str(), "main"),
            busy => unreachable!("{busy:?}"),
        }
        let begun = other.run(Run::begin(&other.chat, &agent, [said("Pay more.")]));
        assert!(matches!(begun, Err(RunError::Busy { .. })), "{begun:?}");
    }
    // One for this run, one for the next.
    till.open.add_permits(2);
    let turn = one.run(driving).unwrap().unwrap();
    assert_eq!((turn.text.as_str(), till.times()), ("It is paid.", 1));
    // It has ended, and its branch is free.
    let next = other.run(run_turn_with_text(&other.chat, &agent, "And now?"));
    assert_eq!(next.unwrap().text, "It is paid.");
}

/// A process that is frozen while its tool works; another takes the run up and drives it.
fn superseded_in_a_tool(store: &Arc<dyn Store>, rerun: Rerun) -> (RunError, Turn, Till, Process) {
    let (one, other) = (Process::new(store), Process::new(store));
    let till = Till::closed();
    let agent = cashier(till.tools(Policy::default(), rerun));
    let mut run = one.run(async { Run::begin(&one.chat, &agent, [said("Pay.")]).await.unwrap() });
    let id = run.id();
    let entered = Arc::clone(&till.entered);
    let driving = one.runtime.spawn(async move { run.drive().await });
    one.run(entered.notified());
    // From here on the first process is frozen.
    let mut taken = other.take_over(id, &agent);
    let turn = other.run(taken.drive()).unwrap();
    // It goes on, and its tool ends.
    till.open.add_permits(1);
    let told = one.run(driving).unwrap().unwrap_err();
    (told, turn, till, other)
}

#[test]
fn a_superseded_driver_gets_its_late_output_back() {
    let (told, turn, till, other) = superseded_in_a_tool(&memory(), Rerun::Unknown);
    assert_eq!((turn.text.as_str(), till.times()), ("Nobody knows.", 1));
    match told {
        RunError::Superseded {
            output: Some(output),
        } => {
            assert_eq!(output.output, Output::Text("paid".to_owned()));
        }
        told => unreachable!("{told:?}"),
    }
    assert_eq!(
        other.run(status_of(&other.chat, turn.run)),
        RunStatus::Completed
    );
}

#[test]
fn a_late_output_is_kept_if_nothing_else_was_done_for_its_call() {
    let store = memory();
    let (told, turn, till, other) = superseded_in_a_tool(&store, Rerun::Ask);
    // The other driver waits for a person's word about what was cut off.
    let calls = waits_for(&turn).to_vec();
    assert!(
        matches!(told, RunError::Superseded { output: None }),
        "{told:?}"
    );
    let agent = cashier(till.tools(Policy::default(), Rerun::Ask));
    let turn = other.run(async {
        let chat = &other.chat;
        let open = open_calls(chat.engine(), chat.owner(), chat.id(), &calls).await;
        assert_eq!(open.unwrap(), []);
        let late = store_decision(chat, turn.run, calls[0], ApprovalDecision::Allow).await;
        assert!(matches!(late, Err(RunError::NotWaiting { .. })), "{late:?}");
        let mut run = Run::resume(chat, turn.run, &agent).await.unwrap();
        run.drive().await.unwrap()
    });
    assert_eq!((turn.text.as_str(), till.times()), ("It is paid.", 1));
}

#[test]
fn a_superseded_driver_starts_no_tool_and_its_answer_is_paid() {
    let store = memory();
    let (one, other) = (Process::new(&store), Process::new(&store));
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let asked = Arc::new(Notify::new());
    let answer = Arc::new(Semaphore::new(0));
    let slow = SlowModel {
        asked: Arc::clone(&asked),
        answer: Arc::clone(&answer),
    };
    let slow = Agent::new("cashier", Arc::new(slow), Target::openai_chat("gpt-4o"))
        .with_tools(till.tools(Policy::default(), Rerun::Unknown))
        .unwrap();
    let mut run = one.run(async { Run::begin(&one.chat, &slow, [said("Pay.")]).await.unwrap() });
    let id = run.id();
    let driving = one.runtime.spawn(async move { run.drive().await });
    one.run(asked.notified());
    let mut taken = other.take_over(id, &agent);
    // Its answer comes before the other one is asked.
    answer.add_permits(1);
    let told = one.run(driving).unwrap().unwrap_err();
    assert!(
        matches!(told, RunError::Superseded { output: None }),
        "{told:?}"
    );
    assert_eq!(till.times(), 0);
    let turn = other.run(taken.drive()).unwrap();
    assert_eq!((turn.text.as_str(), till.times()), ("It is paid.", 1));
    let entry = other.run(list_runs(other.chat.engine(), other.chat.owner(), None));
    let usage = entry.unwrap()[0].usage.unwrap();
    // Two answers of the driver that won, one of the one that lost.
    assert_eq!(usage.responses, 3);
    let path = other.run(transcript(&other.chat));
    assert_eq!(
        path,
        [
            "user Pay.",
            "call pay",
            "output paid",
            "assistant It is paid."
        ]
    );
}

/// A model whose first answer calls `pay`, once it may.
#[derive(Debug)]
struct SlowModel {
    asked: Arc<Notify>,
    answer: Arc<Semaphore>,
}

#[async_trait::async_trait]
impl contexture_models::Model for SlowModel {
    async fn answer(
        &self,
        _: contexture_models::ModelRequest,
    ) -> Result<contexture_models::ModelResponse, contexture_models::ModelError> {
        self.asked.notify_one();
        self.answer.acquire().await.unwrap().forget();
        Ok(calling(&[("late", "pay", "{}")]))
    }
}

#[tokio::test]
async fn a_run_is_resumed_only_by_the_agent_that_began_it() {
    let engine = Engine::in_memory();
    let chat = engine.conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let id = begin(&chat, &agent).await;
    let other = Agent::new("clerk", payer(), Target::openai_chat("gpt-4o"));
    match Run::resume(&chat, id, &other).await {
        Err(RunError::Agent(AgentError::OtherAgent { expected, found })) => {
            assert_eq!((expected.as_str(), found.as_str()), ("cashier", "clerk"));
        }
        other => unreachable!("{other:?}"),
    }
    let renamed = Agent::new("till", payer(), Target::openai_chat("gpt-4o"))
        .with_tools(till.tools(Policy::default(), Rerun::Unknown))
        .unwrap()
        .with_former_names(["cashier"]);
    let mut run = Run::resume(&chat, id, &renamed).await.unwrap();
    assert_eq!(run.drive().await.unwrap().text, "It is paid.");
}

/// A conversation whose run waits for a decision about `pay`.
async fn waiting(chat: &Conversation, agent: &Agent) -> (RunId, NodeId) {
    let turn = run_turn_with_text(chat, agent, "Pay.").await.unwrap();
    let call = waits_for(&turn)[0];
    (turn.run, call)
}

#[tokio::test]
async fn the_first_decision_holds_and_the_list_shows_it() {
    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default().ask("pay"), Rerun::Unknown));
    let (run, call) = waiting(&chat, &agent).await;
    let denied = ApprovalDecision::Deny {
        reason: "too much".into(),
    };
    let first = store_decision(&chat, run, call, denied.clone().by("ada"))
        .await
        .unwrap();
    assert_eq!(first.by.as_deref(), Some("ada"));
    // The same again is no conflict, and who was first stays.
    let again = store_decision(&chat, run, call, denied.clone().by("bob"))
        .await
        .unwrap();
    assert_eq!(again, first);
    match store_decision(&chat, run, call, ApprovalDecision::Allow.by("bob")).await {
        Err(RunError::AlreadyDecided {
            call: named,
            decided,
        }) => {
            assert_eq!((named, decided), (call, first.clone()));
        }
        other => unreachable!("{other:?}"),
    }
    let later = store_decision(&chat, run, call, ApprovalDecision::Later).await;
    assert!(
        matches!(later, Err(RunError::ItemMismatch { .. })),
        "{later:?}"
    );
    let shown = open_calls(chat.engine(), chat.owner(), chat.id(), &[call])
        .await
        .unwrap();
    assert_eq!(shown[0].decided.as_ref(), Some(&first));
    let turn = Run::resume(&chat, run, &agent)
        .await
        .unwrap()
        .drive()
        .await
        .unwrap();
    assert_eq!((turn.text.as_str(), till.times()), ("It is not paid.", 0));
    let late = store_decision(&chat, run, call, ApprovalDecision::Allow).await;
    assert!(matches!(late, Err(RunError::NotWaiting { .. })), "{late:?}");
}

#[test]
fn of_two_that_approve_at_once_one_goes_on() {
    let store = memory();
    let (one, other) = (Process::new(&store), Process::new(&store));
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default().ask("pay"), Rerun::Unknown));
    let (run, call) = one.run(waiting(&one.chat, &agent));
    let approve = |process: &Process| {
        process.run(async {
            store_decision(&process.chat, run, call, ApprovalDecision::Allow.by("ada"))
                .await
                .unwrap();
            Run::resume(&process.chat, run, &agent).await
        })
    };
    let mut first = approve(&one).unwrap();
    let second = approve(&other);
    assert!(matches!(second, Err(RunError::Busy { .. })), "{second:?}");
    let turn = one.run(first.drive()).unwrap();
    assert_eq!((turn.text.as_str(), till.times()), ("It is paid.", 1));
}

#[tokio::test]
async fn a_handle_that_waited_goes_on_by_itself_once_it_is_decided() {
    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default().ask("pay"), Rerun::Unknown));
    let mut run = Run::begin(&chat, &agent, [said("Pay.")]).await.unwrap();
    let call = waits_for(&run.drive().await.unwrap())[0];
    // Nothing was decided, so it waits on.
    assert_eq!(waits_for(&run.drive().await.unwrap()), [call]);
    store_decision(&chat, run.id(), call, ApprovalDecision::Allow)
        .await
        .unwrap();
    assert_eq!(run.drive().await.unwrap().text, "It is paid.");
    assert_eq!(till.times(), 1);
}

#[tokio::test]
async fn a_new_turn_is_refused_while_a_call_waits() {
    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default().ask("pay"), Rerun::Unknown));
    let (run, call) = waiting(&chat, &agent).await;
    let refused = run_turn_with_text(&chat, &agent, "Something else.")
        .await
        .unwrap_err();
    match &refused {
        RunError::Unfinished {
            run: named,
            agent,
            calls,
        } => {
            assert_eq!((*named, agent.as_str()), (run, "cashier"));
            assert_eq!((calls[0].node, calls[0].tool.as_str()), (call, "pay"));
        }
        other => unreachable!("{other:?}"),
    }
    assert!(refused.to_string().contains(&call.to_string()), "{refused}");
    // Nothing of the refused turn is stored, and the branch is free.
    assert_eq!(transcript(&chat).await, ["user Pay.", "call pay"]);
    let ended = abandon_run(&chat, run, "changed my mind").await.unwrap();
    assert_eq!(
        (ended.status, ended.reason.as_deref()),
        (RunStatus::Aborted, Some("changed my mind"))
    );
    assert_eq!(ended.usage.unwrap().responses, 1);
    let turn = run_turn_with_text(&chat, &agent, "Something else.")
        .await
        .unwrap();
    assert_eq!(till.times(), 0);
    // And who lets go of what waits need not abandon it first.
    let lenient = agent.with_unfinished_run(UnfinishedRun::Abandon);
    let next = run_turn_with_text(&chat, &lenient, "And now?")
        .await
        .unwrap();
    assert_eq!(status_of(&chat, turn.run).await, RunStatus::Aborted);
    let late = Run::resume(&chat, turn.run, &lenient).await;
    assert!(
        matches!(late, Err(RunError::ItemMismatch { .. })),
        "{late:?}"
    );
    assert_eq!((waits_for(&next).len(), till.times()), (1, 0));
}

#[tokio::test]
async fn a_run_that_was_interrupted_gives_way_to_a_new_turn() {
    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let first = begin(&chat, &agent).await;
    let turn = run_turn_with_text(&chat, &agent, "Pay now.").await.unwrap();
    assert_eq!((turn.text.as_str(), till.times()), ("It is paid.", 1));
    assert_eq!(status_of(&chat, first).await, RunStatus::Aborted);
}

#[tokio::test]
async fn an_approval_never_runs_a_tool_behind_another_turn() {
    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default().ask("pay"), Rerun::Unknown));
    let (run, call) = waiting(&chat, &agent).await;
    // A program that asks a model by itself, beside all runs.
    chat.save([contexture_ir::user("Forget it.")])
        .await
        .unwrap();
    let target = Target::openai_chat("gpt-4o");
    let asked = chat.compile(&target).await.unwrap();
    chat.record(&asked, &saying("Forgotten.").body)
        .await
        .unwrap();
    store_decision(&chat, run, call, ApprovalDecision::Allow)
        .await
        .unwrap();
    let refused = Run::resume(&chat, run, &agent).await.unwrap_err();
    assert!(matches!(refused, RunError::Ended { .. }), "{refused:?}");
    assert_eq!(till.times(), 0);
    assert_eq!(status_of(&chat, run).await, RunStatus::Aborted);
}

/// A desk that gives a clerk its task; the clerk pays.
fn desk(till: &Till, history: ChildHistory) -> Agent {
    let clerk = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let clerk = SubAgent::new(clerk, "Pays.").with_history(history);
    let model = Arc::new(ScriptedModel::with_fn(|request| {
        Ok(match request.payload.contains(r#""role":"tool""#) {
            false => calling(&[("c", "clerk", r#"{"task":"Pay."}"#)]),
            true => saying("Done."),
        })
    }));
    Agent::new("desk", model, Target::openai_chat("gpt-4o"))
        .with_sub_agent("clerk", clerk)
        .unwrap()
}

#[test]
fn orphans_are_taken_up_parents_first_by_agents_of_their_names() {
    let store = memory();
    let one = Process::new(&store);
    let till = Till::closed();
    let agent = desk(&till, ChildHistory::Fresh);
    let mut run = one.run(async { Run::begin(&one.chat, &agent, [said("Pay.")]).await.unwrap() });
    let desk_run = run.id();
    let entered = Arc::clone(&till.entered);
    one.runtime.spawn(async move { run.drive().await });
    one.run(entered.notified());
    let stranger = one.run(async {
        let chat = one
            .chat
            .engine()
            .conversation("other")
            .open()
            .await
            .unwrap();
        let stranger = Agent::new("stranger", payer(), Target::openai_chat("gpt-4o"));
        begin(&chat, &stranger).await;
        let failing = Arc::new(ScriptedModel::new([]));
        let failing = Agent::new("failing", failing, Target::openai_chat("gpt-4o"));
        let chat = one
            .chat
            .engine()
            .conversation("third")
            .open()
            .await
            .unwrap();
        begin(&chat, &failing).await;
        stranger
    });
    // The process is killed while the child's tool works.
    drop(one);
    till.open.add_permits(10);
    let other = Process::new(&store);
    let names = std::sync::Mutex::new(Vec::new());
    let recovered = other.run(recover_runs(
        other.chat.engine(),
        other.chat.owner(),
        |name| {
            names.lock().unwrap().push(name.to_owned());
            match name {
                "desk" => Some(agent.clone()),
                "failing" => Some(stranger.clone()),
                _ => None,
            }
        },
    ));
    let recovered = recovered.unwrap();
    // Children are not asked for: their parents have them.
    let mut names = names.into_inner().unwrap();
    names.sort();
    // Where it was not known yet that the process had died, once more.
    names.dedup();
    assert_eq!(names, ["desk", "failing", "stranger"]);
    let [desk, failing] = &recovered[..] else {
        unreachable!("{recovered:?}");
    };
    assert_eq!(desk.entry.id(), Some(desk_run));
    let turn = desk.outcome.as_ref().unwrap();
    assert_eq!(turn.text, "Done.");
    // Two answers of the desk, two of the clerk, which was told that nobody knows.
    assert_eq!((turn.usage.responses, till.times()), (4, 1));
    assert!(
        matches!(failing.outcome, Err(RunError::Agent(_))),
        "{failing:?}"
    );
    let listed = other
        .run(list_runs(other.chat.engine(), other.chat.owner(), None))
        .unwrap();
    let of = |agent: &str| {
        listed
            .iter()
            .filter(|entry| entry.agent == agent)
            .map(|entry| entry.status)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("cashier"), [RunStatus::Completed]);
    assert_eq!(of("stranger"), [RunStatus::Running]);
}

#[tokio::test]
async fn what_waits_is_recovered_once_it_is_decided() {
    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default().ask("pay"), Rerun::Unknown));
    let (run, call) = waiting(&chat, &agent).await;
    let recover = || recover_runs(chat.engine(), chat.owner(), |_| Some(agent.clone()));
    assert_eq!(recover().await.unwrap().len(), 0);
    store_decision(&chat, run, call, ApprovalDecision::Allow)
        .await
        .unwrap();
    let recovered = recover().await.unwrap();
    assert_eq!(recovered[0].outcome.as_ref().unwrap().text, "It is paid.");
    assert_eq!(till.times(), 1);
}

#[test]
fn sqlite_tells_at_once_that_a_driver_has_died() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    let open = || -> Arc<dyn Store> { Arc::new(SqliteStore::open(&path).unwrap()) };
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let till = Till::open();
    let agent = cashier(till.tools(Policy::default(), Rerun::Unknown));
    let first = runtime();
    let id = first.block_on(async {
        let chat = Engine::new(open()).conversation("c").open().await.unwrap();
        // Its claim is never released: the runtime ends before the next beat.
        begin(&chat, &agent).await
    });
    drop(first);
    let turn = runtime().block_on(async {
        let chat = Engine::new(open()).conversation("c").open().await.unwrap();
        Run::resume(&chat, id, &agent).await?.drive().await
    });
    assert_eq!(turn.unwrap().text, "It is paid.");
}

#[test]
fn every_node_of_a_run_names_run_and_step() {
    let store = memory();
    let one = Process::new(&store);
    let till = Till::open();
    let agent = desk(&till, ChildHistory::Forked);
    one.run(async {
        run_turn_with_text(&one.chat, &agent, "Pay.").await.unwrap();
        for branch in one.chat.refs().await.unwrap().branches {
            let request = ReadRequest::whole_path(PathEnd::Branch(branch.name));
            let (owner, id) = (one.chat.owner(), one.chat.id());
            let page = store.read_path(owner, id, request).await.unwrap();
            for node in page.nodes {
                assert!(node.run.is_some() && node.step.is_some(), "{node:?}");
            }
        }
    });
}
