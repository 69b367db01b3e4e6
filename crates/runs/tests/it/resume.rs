//! A run that is taken up by another process comes to what it would have come to: to the same end, text and figures.
//!
//! Each scene is cut off at every call of its store. Not here: that all that is stored is the same (`crash`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use contexture_compile::Target;
use contexture_engine::{
    Clock, CompactOptions, Conversation, Engine, EngineError, ModelCompactor, PrepareOptions,
    TestIds, Trigger,
};
use contexture_ir::{Item, Message, Raw, Role, user};
use contexture_layers::builtin::{Guardrails, Observations};
use contexture_layers::{Layers, Rerun, ToolGate};
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse, ScriptedModel};
use contexture_runs::{
    Agent, ApprovalDecision, Run, RunError, RunEvent, RunEventKind, RunStatus, RunUsage,
    StopCondition, SubAgent, ToolBox, ToolCall, ToolOptions, ToolOutput, TurnEnd, list_runs,
    post_to_inbox, run_turn_with_text, store_decision, waiting_calls,
};
use contexture_store::{MemoryStore, Store};
use contexture_store_testkit::{Faulty, InjectedFault, Method};
use contexture_tools::{Policy, Tool};
use futures_util::FutureExt as _;

use crate::laws::answers;
use crate::scripted_agent::timeless_spent;
use crate::test_support::{calling, saying, tools, transcript, when_free};

/// A clock that stands.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now_ms(&self) -> i64 {
        1_000
    }
}

/// What a run came to, as the process says that ended it, or as lists say.
#[derive(Debug, PartialEq)]
struct Came {
    status: RunStatus,
    text: String,
    value: Option<Raw>,
    spent: RunUsage,
}

/// An agent, given the store that never fails.
type Agents = Box<dyn Fn(&Arc<dyn Store>) -> Agent>;

/// A conversation, its layers, and an agent that says what follows from what it is asked.
struct Scene {
    layers: Layers,
    /// Which of its calls of the store it is cut off at.
    every: usize,
    /// For layers.
    model: Option<Arc<ScriptedModel>>,
    agent: Agents,
}

impl Scene {
    fn of(agent: impl Fn(&Arc<dyn Store>) -> Agent + 'static) -> Self {
        Self {
            layers: Layers::new(),
            model: None,
            every: 1,
            agent: Box::new(agent),
        }
    }

    async fn open(&self, store: Arc<dyn Store>) -> Result<Conversation, RunError> {
        let engine = Engine::new(store)
            .with_clock(Still)
            .with_ids(TestIds::default())
            .without_calibration()
            .with_layers(self.layers.clone());
        let engine = match &self.model {
            None => engine,
            Some(model) => engine.with_layer_model(model.clone(), Target::openai_chat("gpt-4o")),
        };
        Ok(engine.conversation("c").open().await?)
    }

    /// A process: begins the run or goes on with it, and says what it came to. `plain` is the store that never fails.
    async fn go_on(
        &self,
        store: Arc<dyn Store>,
        plain: &Arc<dyn Store>,
    ) -> Result<(Came, Option<TurnEnd>), RunError> {
        let chat = self.open(store).await?;
        let agent = (self.agent)(plain);
        loop {
            let listed = list_runs(chat.engine(), chat.owner(), Some(&chat)).await?;
            let root = listed.into_iter().find(|run| run.parent.is_none());
            let mut run = match root {
                Some(entry) if entry.status.is_open() => {
                    let id = entry.id().unwrap();
                    match when_free(async || Run::resume(&chat, id, &agent).await).await {
                        Err(RunError::ItemMismatch { .. }) => continue,
                        run => run?,
                    }
                }
                Some(entry) if chat.head().await?.is_some() => {
                    let came = Came {
                        status: entry.status,
                        text: entry.result.unwrap_or_default(),
                        value: entry.value,
                        spent: timeless_spent(entry.usage.unwrap()),
                    };
                    return Ok((came, None));
                }
                _ => when_free(async || Run::begin(&chat, &agent, [said("Work.")]).await).await?,
            };
            let turn = run.drive().await?;
            let came = Came {
                status: RunStatus::Completed,
                text: turn.text,
                value: turn.value,
                spent: timeless_spent(turn.usage),
            };
            return Ok((came, Some(turn.end)));
        }
    }

    /// Cuts the run off at every call of its store, and has another process go on: `check` is shown each.
    async fn cut_anywhere(&self, mut check: impl AsyncFnMut(&Cut<'_>)) -> usize {
        let fresh = || -> Arc<dyn Store> { Arc::new(MemoryStore::new()) };
        let plain = fresh();
        let counted = Arc::new(Faulty::never(Arc::clone(&plain)));
        let whole = self.go_on(counted.clone(), &plain).await.unwrap();
        let calls = counted.call_counts().values().sum::<u64>();
        let mut resumed = 0;
        for fault in [InjectedFault::Before, InjectedFault::After] {
            for call in (1..=calls).step_by(self.every) {
                let plain = fresh();
                let faulty = Arc::new(Faulty::failing_call(Arc::clone(&plain), call, fault));
                let cut = match self.go_on(faulty, &plain).await {
                    Ok(cut) => cut,
                    Err(RunError::Engine(EngineError::Store(_))) => {
                        resumed += 1;
                        self.go_on(Arc::clone(&plain), &plain).await.unwrap()
                    }
                    Err(error) => unreachable!("{call} {fault:?}: {error}"),
                };
                let chat = self.open(plain).await.unwrap();
                let at = format!("{call} {fault:?}");
                let whole = (&whole.0, &whole.1);
                check(&Cut {
                    at,
                    whole,
                    cut,
                    chat,
                })
                .await;
            }
        }
        resumed
    }
}

/// A run that was cut off and gone on with, beside one that was not.
struct Cut<'a> {
    at: String,
    whole: (&'a Came, &'a Option<TurnEnd>),
    cut: (Came, Option<TurnEnd>),
    chat: Conversation,
}

impl Cut<'_> {
    /// It is the same, its end too where a process has told it.
    fn is_the_same(&self) {
        assert_eq!(&self.cut.0, self.whole.0, "{}", self.at);
        if self.cut.1.is_some() {
            assert_eq!(&self.cut.1, self.whole.1, "{}", self.at);
        }
    }
}

fn said(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

/// A model that answers by how often an output stands in what it is asked.
fn by_outputs(
    answer: impl Fn(usize, &ModelRequest) -> ModelResponse + Send + Sync + 'static,
) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::with_fn(move |request| {
        let outputs = request.payload.matches(r#""role":"tool""#).count();
        Ok(answer(outputs, request))
    }))
}

fn agent(model: Arc<dyn Model>) -> Agent {
    let ran = Arc::new(AtomicU32::new(0));
    Agent::new("worker", model, Target::openai_chat("gpt-4o"))
        .with_tools(tools(&ran))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_to_stop_a_run_is_asked_again() {
    // Once it sees a call of a certain sum: the call is never run.
    let add = |sum: usize| {
        let arguments = format!(r#"{{"a":{sum},"b":1}}"#);
        calling(&[(&format!("c{sum}"), "add", &arguments)])
    };
    let scene = Scene::of(move |_| {
        let until = StopCondition::new("it adds three", |now| {
            let three = |call: &contexture_ir::FunctionCall| call.arguments.contains("3");
            Ok::<_, RunError>(now.calls.iter().any(three))
        });
        agent(by_outputs(move |outputs, _| add(outputs + 1))).with_stop_condition(until)
    });
    let resumed = scene
        .cut_anywhere(async |cut| {
            cut.is_the_same();
            let said = transcript(&cut.chat).await;
            assert_eq!(said.last().unwrap(), "call add", "{}", cut.at);
        })
        .await;
    assert!(resumed > 20, "{resumed}");
}

#[tokio::test(start_paused = true)]
async fn what_is_to_stop_a_run_is_shown_all_its_texts_again() {
    // Three answers that call nothing; behind the first stands a message that came meanwhile, behind the second another.
    let scene = Scene::of(|plain| {
        let until = StopCondition::new("two texts", |now| {
            Ok::<_, RunError>(now.outputs == ["First.", "Second."])
        });
        let model = ScriptedModel::with_fn(|request| {
            let texts = ["First.", "Second.", "Third."];
            let mut left = texts
                .iter()
                .filter(|text| !request.payload.contains(**text));
            Ok(saying(left.next().unwrap()))
        });
        let plain = Arc::clone(plain);
        let observer = move |event: &RunEvent| {
            if let RunEventKind::ResponseStored { response, .. } = &event.kind {
                let more = async {
                    let chat = Engine::new(Arc::clone(&plain))
                        .conversation("c")
                        .open()
                        .await?;
                    post_to_inbox(&chat, &said(&format!("More: {response}."))).await
                };
                more.now_or_never().unwrap().unwrap();
            }
        };
        agent(Arc::new(model))
            .with_stop_condition(until)
            .with_observer(observer)
    });
    let mut compared = 0;
    let resumed = scene.cut_anywhere(async |cut| {
        let said = transcript(&cut.chat).await;
        // Where the process was cut off before it could be told that there is more, there is none.
        if said.contains(&"assistant Second.".to_owned()) {
            cut.is_the_same();
            compared += 1;
        }
    });
    assert!(resumed.await > 20 && compared > 20, "{compared}");
}

/// A model during whose first call somebody else appends.
#[derive(Debug)]
struct Interrupted {
    plain: Arc<dyn Store>,
}

#[async_trait]
impl Model for Interrupted {
    async fn answer(&self, asked: ModelRequest) -> Result<ModelResponse, ModelError> {
        if asked.payload.contains("Wait!") {
            return Ok(saying("Heard."));
        }
        let engine = Engine::new(Arc::clone(&self.plain));
        let chat = engine.conversation("c").open().await.unwrap();
        chat.save([user("Wait!")]).await.unwrap();
        Ok(saying("Too late."))
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_came_too_late_cost_what_they_cost() {
    let scene = Scene::of(|plain| {
        let plain = Arc::clone(plain);
        agent(Arc::new(Interrupted { plain }))
    });
    let mut late = 0;
    let resumed = scene.cut_anywhere(async |cut| {
        let stored = answers(&cut.chat).await;
        assert_eq!(cut.cut.0.spent.responses, stored, "{}", cut.at);
        assert_eq!(cut.cut.0.spent.tokens.input, Some(10 * stored));
        // Cut off before the one that came too late was stored, there is none.
        if stored == 2 {
            cut.is_the_same();
            late += 1;
        }
    });
    assert!(resumed.await > 20 && late > 20, "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_has_taken_as_many_steps_in_every_process() {
    let asks = Guardrails::new().with_rule("asked", ToolGate::Ask("sure?".into()));
    let mut scene = Scene::of(|_| {
        agent(by_outputs(|outputs, _| match outputs {
            0 => calling(&[("c1", "asked", "{}")]),
            _ => saying("Done."),
        }))
    });
    scene.layers = Layers::new().with_layer(asks).unwrap();
    let resumed = scene.cut_anywhere(async |cut| {
        cut.is_the_same();
        assert!(matches!(cut.whole.1, Some(TurnEnd::Waiting { .. })));
        let plain = Arc::clone(cut.chat.engine().store());
        let listed = list_runs(cut.chat.engine(), cut.chat.owner(), None);
        let id = listed.await.unwrap()[0].id().unwrap();
        let agent = (scene.agent)(&plain);
        let taken_up = when_free(async || Run::resume(&cut.chat, id, &agent).await).await;
        let taken_up = taken_up.unwrap();
        assert_eq!(timeless_spent(taken_up.usage()), cut.whole.0.spent);
        drop(taken_up);
        for _ in 0..2 {
            let again = scene.go_on(Arc::clone(&plain), &plain).await.unwrap();
            assert_eq!((&again.0, &again.1), cut.whole, "{}", cut.at);
        }
    });
    assert!(resumed.await > 10);
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_for_one_time_only() {
    // It is cut off the first two times it runs.
    let chat = crate::test_support::chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ran);
    let pay = move |_: ToolCall| {
        let earlier = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match earlier {
                0 | 1 => std::future::pending().await,
                _ => Ok(ToolOutput::from("paid")),
            }
        }
    };
    let options = ToolOptions {
        rerun: Rerun::Ask,
        ..ToolOptions::default()
    };
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let mut tools = ToolBox::new(Policy::default().ask("pay"));
    tools
        .add_tool_with(Tool::function("pay", "Pays.", schema), options, pay)
        .unwrap();
    let model = by_outputs(|outputs, _| match outputs {
        0 => calling(&[("c1", "pay", "{}")]),
        _ => saying("Paid."),
    });
    let agent = agent(model).with_tools(tools).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Pay.").await.unwrap();
    let TurnEnd::Waiting { calls } = turn.end else {
        unreachable!("{turn:?}")
    };
    let resume = async || Run::resume(&chat, turn.run, &agent).await.unwrap();
    let allow = async || {
        store_decision(&chat, turn.run, calls[0], ApprovalDecision::Allow)
            .await
            .unwrap()
    };
    for time in 1..=2 {
        allow().await;
        let mut run = resume().await;
        let cut = tokio::time::timeout(Duration::from_secs(1), run.drive()).await;
        assert!(cut.is_err(), "{cut:?}");
        drop(run);
        // However often it is taken up, it waits for a word on this.
        for _ in 0..2 {
            let end = resume().await.drive().await.unwrap().end;
            assert!(matches!(end, TurnEnd::Waiting { .. }), "{end:?}");
            assert_eq!(ran.load(Ordering::SeqCst), time);
        }
    }
    allow().await;
    assert_eq!(resume().await.drive().await.unwrap().text, "Paid.");
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

/// Calls a tool that ends the run, and one beside it.
fn finishing() -> Scene {
    Scene::of(|_| {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let again = ToolOptions {
            rerun: Rerun::Repeat,
            ..ToolOptions::default()
        };
        let mut tools = tools(&Arc::default());
        let finish = |_: ToolCall| async {
            let value = Raw::parse(r#"{"answer":42}"#).unwrap();
            Ok(ToolOutput::end_run(value))
        };
        let tool = Tool::function("finish", "Ends it.", schema);
        tools.add_tool_with(tool, again, finish).unwrap();
        let model = by_outputs(|outputs, _| match outputs {
            0 => calling(&[("c1", "finish", "{}"), ("c2", "add", r#"{"a":1,"b":2}"#)]),
            _ => saying("never said"),
        });
        agent(model).with_tools(tools).unwrap()
    })
}

#[tokio::test(start_paused = true)]
async fn a_tool_ends_the_run_with_a_value() {
    let scene = finishing();
    let resumed = scene.cut_anywhere(async |cut| {
        cut.is_the_same();
        let value = cut.cut.0.value.as_ref().unwrap().get();
        assert_eq!(value, r#"{"answer":42}"#, "{}", cut.at);
        assert_eq!(cut.whole.1, &Some(TurnEnd::Completed));
        assert_eq!(cut.cut.0.spent.responses, 1);
        // What was called beside it is done.
        let said = transcript(&cut.chat).await;
        assert_eq!(
            said[3..],
            [r#"output {"answer":42}"#, "output 3"],
            "{}",
            cut.at
        );
    });
    assert!(resumed.await > 20);
}

#[tokio::test(start_paused = true)]
async fn a_program_ends_the_run_with_a_value_and_the_first_one_counts() {
    let scene = finishing();
    let plain: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let chat = scene.open(Arc::clone(&plain)).await.unwrap();
    let agent = (scene.agent)(&plain);
    let mut run = Run::begin(&chat, &agent, [said("Work.")]).await.unwrap();
    run.complete_with_value(&[1, 2]).await.unwrap();
    run.complete_with_value(&"too late").await.unwrap();
    let id = run.id();
    drop(run);
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    let turn = run.drive().await.unwrap();
    assert_eq!(turn.end, TurnEnd::Completed);
    assert_eq!(turn.value.unwrap().get(), "[1,2]");
    assert_eq!(turn.usage.responses, 0);
    let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    assert_eq!(listed[0].value.as_ref().unwrap().get(), "[1,2]");
}

#[tokio::test(start_paused = true)]
async fn the_value_of_a_child_is_its_parents_output() {
    let chat = crate::test_support::chat().await;
    let inner = (finishing().agent)(chat.engine().store());
    let outer = crate::test_support::model([
        calling(&[("c1", "think", r#"{"task":"What is it?"}"#)]),
        saying("It is 42."),
    ]);
    let agent = agent(outer)
        .with_sub_agent("think", SubAgent::new(inner, "Thinks."))
        .unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Ask.").await.unwrap();
    assert_eq!((turn.text.as_str(), turn.value), ("It is 42.", None));
    assert_eq!(transcript(&chat).await[2], r#"output {"answer":42}"#);
}

/// One whose child calls a tool that a person has to allow.
fn waiting_below() -> Scene {
    let asks = Guardrails::new().with_rule("asked", ToolGate::Ask("sure?".into()));
    let mut scene = Scene::of(|_| {
        let inner = by_outputs(|outputs, _| match outputs {
            0 => calling(&[("c1", "asked", "{}")]),
            _ => saying("Forty-two."),
        });
        let outer = by_outputs(|outputs, _| match outputs {
            0 => calling(&[
                ("c1", "think", r#"{"task":"What is it?"}"#),
                ("c2", "add", r#"{"a":1,"b":2}"#),
            ]),
            _ => saying("It is 42."),
        });
        let thinker = SubAgent::new(agent(inner), "Thinks.");
        agent(outer).with_sub_agent("think", thinker).unwrap()
    });
    scene.layers = Layers::new().with_layer(asks).unwrap();
    scene
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_the_calls_of_runs_below_it() {
    let denied = ApprovalDecision::Deny {
        reason: "not today".into(),
    };
    for (decision, output) in [
        (ApprovalDecision::Allow, "output ran"),
        (denied, "output not today"),
    ] {
        let scene = waiting_below();
        let plain: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (came, end) = scene.go_on(Arc::clone(&plain), &plain).await.unwrap();
        let chat = scene.open(Arc::clone(&plain)).await.unwrap();
        let Some(TurnEnd::Waiting { calls }) = end else {
            unreachable!("{came:?}")
        };
        let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
        let waits = |run: &contexture_runs::RunEntry| run.status == RunStatus::Waiting;
        assert!(listed.len() == 2 && listed.iter().all(waits), "{listed:?}");
        let root = listed.iter().find(|run| run.parent.is_none()).unwrap();
        let child = listed.iter().find(|run| run.parent.is_some()).unwrap();
        let waited = root.clone();
        // What waits is the child's call; what is called beside it is done.
        let below = chat.for_branch(child.branch.parse().unwrap());
        assert_eq!(transcript(&below).await.last().unwrap(), "call asked");
        assert_eq!(Some(calls[0]), below.head().await.unwrap());
        assert_eq!(calls.len(), 1);
        let said = transcript(&chat).await;
        assert_eq!(said[1..], ["call think", "call add", "output 3"]);
        // Lists name it for both, and read no path for that.
        let counted = Arc::new(Faulty::never(Arc::clone(&plain)));
        let engine = Engine::new(counted.clone());
        let waiting = async |run| waiting_calls(&engine, chat.owner(), run).await.unwrap();
        for run in &listed {
            let told = waiting(run).await;
            let told: Vec<_> = told.iter().map(|call| (call.node, &*call.tool)).collect();
            assert_eq!(told, [(calls[0], "asked")]);
        }
        let asked: Vec<_> = counted.call_counts().into_keys().collect();
        assert!(!asked.contains(&Method::ReadPath), "{asked:?}");

        store_decision(&chat, root.id().unwrap(), calls[0], decision)
            .await
            .unwrap();
        let (came, end) = scene.go_on(Arc::clone(&plain), &plain).await.unwrap();
        assert_eq!(
            (end, came.text.as_str()),
            (Some(TurnEnd::Completed), "It is 42.")
        );
        assert_eq!(came.spent.responses, answers(&chat).await);
        assert_eq!(came.spent.responses, 4);
        assert_eq!(transcript(&below).await[2], output);
        assert_eq!(transcript(&chat).await[4], "output Forty-two.");
        let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
        assert!(listed.iter().all(|run| run.status == RunStatus::Completed));
        // Whoever listed them earlier is told that nothing waits any more.
        assert_eq!(waiting(&waited).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_one_below_it_may_be_cut_off_anywhere() {
    let scene = waiting_below();
    let resumed = scene.cut_anywhere(async |cut| {
        assert_eq!(cut.cut.1.as_ref(), cut.whole.1.as_ref(), "{}", cut.at);
        cut.is_the_same();
        let plain = Arc::clone(cut.chat.engine().store());
        let Some(TurnEnd::Waiting { calls }) = &cut.cut.1 else {
            unreachable!("{}", cut.at)
        };
        let listed = list_runs(cut.chat.engine(), cut.chat.owner(), None)
            .await
            .unwrap();
        let root = listed.iter().find(|run| run.parent.is_none()).unwrap();
        let decided = store_decision(
            &cut.chat,
            root.id().unwrap(),
            calls[0],
            ApprovalDecision::Allow,
        );
        decided.await.unwrap();
        let (came, _) = scene.go_on(Arc::clone(&plain), &plain).await.unwrap();
        assert_eq!(came.text, "It is 42.", "{}", cut.at);
        assert_eq!(
            (came.spent.responses, came.spent.steps),
            (4, 6),
            "{}",
            cut.at
        );
    });
    assert!(resumed.await > 20);
}

#[tokio::test(start_paused = true)]
async fn what_is_spent_on_the_side_counts() {
    // A layer that asks a model, and summaries by one, in a run and in one below it.
    let side = by_outputs(|_, _| saying("- Grace owns the parcel"));
    let summaries = ModelCompactor::new(side.clone(), Target::openai_chat("gpt-4o"));
    let mut scene = Scene::of(move |_| {
        let long = || "And so on. ".repeat(120);
        let prepare = PrepareOptions {
            trigger: Trigger::Tokens(1_500),
            compact: CompactOptions {
                compactor: Arc::new(summaries.clone()),
                ..CompactOptions::default()
            },
            ..PrepareOptions::default()
        };
        let again = ToolOptions {
            rerun: Rerun::Repeat,
            ..ToolOptions::default()
        };
        let mut tools = tools(&Arc::default());
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let read = move |_: ToolCall| async move { Ok(ToolOutput::from(long())) };
        let tool = Tool::function("read", "Reads.", schema);
        tools.add_tool_with(tool, again, read).unwrap();
        // By what is said last: earlier outputs may be summed up.
        let model = |say: &'static str, calls: &'static [&'static str]| {
            Arc::new(ScriptedModel::with_fn(move |request| {
                let done = |id: &&&str| request.payload.contains(&format!("\"{id}-{say}\""));
                let next = calls
                    .iter()
                    .rposition(|id| done(&id))
                    .map_or(0, |at| at + 1);
                Ok(match calls.get(next) {
                    None => saying(say),
                    Some(name) => {
                        let id = format!("{name}-{say}");
                        let tool = if *name == "think" { "think" } else { "read" };
                        calling(&[(&id, tool, r#"{"task":"Read."}"#)])
                    }
                })
            }))
        };
        let inner = agent(model("inner", &["a", "b", "c", "d", "e"]))
            .with_tools(tools)
            .unwrap()
            .with_prepare_options(prepare.clone());
        let outer = agent(model("outer", &["think"]));
        outer
            .with_prepare_options(prepare)
            .with_sub_agent("think", SubAgent::new(inner, "Reads."))
            .unwrap()
    });
    let asking = side.clone();
    scene.layers = Layers::new()
        .with_layer(Observations::new().with_model(100))
        .unwrap();
    scene.model = Some(side);
    scene.every = 5;
    let plain: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (came, _) = scene.go_on(Arc::clone(&plain), &plain).await.unwrap();
    let chat = scene.open(Arc::clone(&plain)).await.unwrap();
    let on_the_side = asking.requests().len() as u64;
    let summed_up =
        |request: &ModelRequest| !request.payload.contains("Note what will matter later");
    let sums = asking
        .requests()
        .iter()
        .filter(|one| summed_up(one))
        .count() as u64;
    assert!(sums > 0 && on_the_side > sums, "{sums} of {on_the_side}");
    assert_eq!(came.spent.responses, answers(&chat).await + on_the_side);
    assert_eq!(came.spent.tokens.input, Some(10 * came.spent.responses));
    // Another process knows of them too.
    let resumed = scene.cut_anywhere(async |cut| cut.is_the_same());
    assert!(resumed.await > 20);
}
