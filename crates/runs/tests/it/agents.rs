//! Agents over conversations: what they do, what is kept, what is denied.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_engine::{Conversation, MessageView};
use contexture_ir::{FunctionTool, Item, Message, Role, ToolDefinition};
use contexture_layers::{
    AnswerVerdict, ChildEnd, ChildResult, HookContext, Layer, LayerError, LayerId, LayerSpec,
    Layers, ObservedItems, RecallInput, RunEnd, ToolGate, ToolRequest,
};
use contexture_runs::{
    ApprovalDecision, ChildHistory, Run, RunBudget, RunError, RunEventKind, RunStatus,
    StopCondition, SubAgent, ToolBox, ToolOutput, TurnEnd, list_runs, post_to_inbox, run_timeline,
    run_turn_with_text, store_decision,
};
use contexture_tools::Policy;
use contexture_wire::{Format, ToolNameMap};

use crate::test_support::{agent, calling, chat, model, saying, tool, tools, transcript};

#[tokio::test]
async fn a_turn_goes_on_until_an_answer_calls_nothing() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[
            ("c1", "add", r#"{"a":1,"b":2}"#),
            ("c2", "add", r#"{"a":3,"b":4}"#),
        ]),
        saying("Three and seven."),
    ]);
    let agent = agent(&model).with_tools(tools(&ran)).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Add.").await.unwrap();
    assert_eq!(turn.end, TurnEnd::Completed);
    assert_eq!(turn.text, "Three and seven.");
    assert_eq!((turn.usage.responses, turn.usage.steps), (2, 3));
    assert_eq!(turn.usage.tokens.input, Some(20));
    assert_eq!(
        transcript(&chat).await,
        [
            "user Add.",
            "call add",
            "call add",
            "output 3",
            "output 7",
            "assistant Three and seven."
        ]
    );
    let asked = model.requests();
    assert_eq!(asked.len(), 2);
    assert!(
        asked[1].payload.contains(r#""content":"7""#),
        "{}",
        asked[1].payload
    );
    let listed = list_runs(chat.engine(), chat.owner(), Some(&chat))
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].status, RunStatus::Completed);
    assert_eq!(listed[0].result.as_deref(), Some("Three and seven."));
    // Nothing of the run is left on the tree.
    let at = contexture_store::PathEnd::Branch(chat.branch());
    let request = contexture_store::StateRequest::all_entries(at);
    let state = chat
        .engine()
        .store()
        .read_state(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    assert!(
        !state
            .root
            .keys()
            .any(|key| key.as_str().starts_with("run/")),
        "{:?}",
        state.root
    );
}

#[tokio::test]
async fn what_a_tool_cannot_do_is_told_to_the_model() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[
            ("c1", "nothing", "{}"),
            ("c2", "add", r#"{"a":"x"}"#),
            ("c3", "forbidden", "{}"),
        ]),
        saying("Well."),
    ]);
    let agent = agent(&model).with_tools(tools(&ran)).unwrap();
    run_turn_with_text(&chat, &agent, "Try.").await.unwrap();
    let said = transcript(&chat).await.join("\n");
    assert!(said.contains("unknown tool \"nothing\""), "{said}");
    assert!(said.contains("forbidden is denied"), "{said}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// Says every answer again in its own words, which are the same.
struct SameAgain;

#[async_trait]
impl Layer for SameAgain {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("same_again").unwrap())
    }

    async fn init(&self, _: &HookContext) -> Result<u32, LayerError> {
        Ok(0)
    }

    async fn recall(&self, _: &u32, _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn after_model(
        &self,
        _: &mut u32,
        answer: &[Item],
        _: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        Ok(AnswerVerdict::Fix(answer.to_vec()))
    }
}

#[tokio::test]
async fn a_tool_is_known_by_the_name_it_was_given() {
    // The provider takes no dots, so the model is told another name.
    let function = FunctionTool {
        name: "files.read".to_owned(),
        ..FunctionTool::default()
    };
    let renames = ToolNameMap::for_tools(Format::OpenAiChat, &[ToolDefinition::Function(function)]);
    let (sent, given) = renames.iter().next().unwrap();
    for layers in [Layers::new(), Layers::new().with_layer(SameAgain).unwrap()] {
        let chat = chat().await;
        chat.set_layers(layers);
        let mut tools = ToolBox::new(Policy::default());
        tool(&mut tools, given, || Ok(ToolOutput::from("read")));
        let model = model([calling(&[("c1", sent, "{}")]), saying("Read.")]);
        run_turn_with_text(&chat, &agent(&model).with_tools(tools).unwrap(), "Read.")
            .await
            .unwrap();
        assert!(model.requests()[0].payload.contains(sent));
        assert_eq!(
            transcript(&chat).await,
            [
                "user Read.",
                "call files.read",
                "output read",
                "assistant Read."
            ]
        );
    }
}

/// Denies one tool, writes down every hook.
struct Watching(Arc<Mutex<Vec<String>>>);

impl Watching {
    fn saw(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }
}

#[async_trait]
impl Layer for Watching {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("watching").unwrap())
    }

    async fn init(&self, _: &HookContext) -> Result<u32, LayerError> {
        self.saw("init");
        Ok(0)
    }

    async fn recall(&self, _: &u32, _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        self.saw("recall");
        Ok(Vec::new())
    }

    fn project_history(&self, _: &u32, _: &mut contexture_layers::Projection) {
        self.saw("project_history");
    }

    async fn on_append(
        &self,
        _: &mut u32,
        items: Vec<Item>,
        _: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        self.saw("on_append");
        Ok(items)
    }

    async fn after_model(
        &self,
        _: &mut u32,
        answer: &[Item],
        _: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        self.saw("after_model");
        if answer.iter().any(|item| item.text().contains("rude")) {
            let feedback = "Be polite.".to_owned();
            return Ok(AnswerVerdict::Retry { feedback });
        }
        Ok(AnswerVerdict::Pass)
    }

    async fn before_tool(
        &self,
        _: &mut u32,
        call: &ToolRequest,
        _: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        self.saw(format!("before_tool {}", call.tool));
        match call.tool.as_str() {
            "gated" => Ok(ToolGate::Deny("not now".into())),
            "asked" => Ok(ToolGate::Ask("sure?".into())),
            _ => Ok(ToolGate::Guide("mind the sign".into())),
        }
    }

    async fn observe(
        &self,
        state: &mut u32,
        seen: &ObservedItems<'_>,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        // Counted whatever it shows: a node that only carries state is not shown.
        self.saw(format!("observe {}", seen.items.len()));
        *state += 1;
        Ok(())
    }

    async fn on_spawn(&self, parent: &u32, _: &HookContext) -> Result<Option<u32>, LayerError> {
        self.saw("on_spawn");
        Ok(Some(*parent))
    }

    async fn on_return(
        &self,
        _: &mut u32,
        _: &u32,
        end: &ChildEnd,
        _: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        self.saw(format!(
            "on_return {}",
            end.result.as_deref().unwrap_or("nothing")
        ));
        Ok(ChildResult::Keep)
    }

    async fn on_complete(
        &self,
        _: &mut u32,
        end: &RunEnd,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        self.saw(match end {
            RunEnd::Completed => "on_complete".to_owned(),
            RunEnd::Aborted { .. } => "on_complete aborted".to_owned(),
            RunEnd::Failed { .. } => "on_complete failed".to_owned(),
        });
        Ok(())
    }

    async fn dispose(&self, _: &u32) -> Result<(), LayerError> {
        self.saw("dispose");
        Ok(())
    }
}

async fn watched() -> (Conversation, Arc<Mutex<Vec<String>>>) {
    let chat = chat().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    chat.set_layers(
        Layers::new()
            .with_layer(Watching(Arc::clone(&seen)))
            .unwrap(),
    );
    (chat, seen)
}

#[tokio::test]
async fn every_hook_runs_in_its_place() {
    let (chat, seen) = watched().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("c1", "add", r#"{"a":1,"b":2}"#), ("c2", "gated", "{}")]),
        saying("Three."),
    ]);
    let agent = agent(&model).with_tools(tools(&ran)).unwrap();
    run_turn_with_text(&chat, &agent, "Add.").await.unwrap();
    let hooks = [
        "init",
        "on_append",
        "observe 1",
        "recall",
        "project_history",
        "after_model",
        "observe 2",
        "before_tool add",
        "before_tool gated",
        "on_append",
        "observe 1",
        "on_append",
        "observe 1",
        "recall",
        "project_history",
        "after_model",
        "observe 1",
        "on_complete",
        "dispose",
    ];
    assert_eq!(*seen.lock().unwrap(), hooks);
    let said = transcript(&chat).await;
    assert_eq!(said[3], "output 3\n\nmind the sign");
    assert_eq!(said[4], "output not now");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn refused_answer_is_retried_and_hidden_from_model() {
    let (chat, _) = watched().await;
    let model = model([saying("rude"), saying("rude too"), saying("With pleasure.")]);
    let turn = run_turn_with_text(&chat, &agent(&model), "Please.")
        .await
        .unwrap();
    assert_eq!(turn.text, "With pleasure.");
    assert_eq!(turn.usage.responses, 3);
    let asked = model.requests();
    assert!(asked[2].payload.contains("Be polite."));
    assert!(!asked[2].payload.contains("rude"));
    let people = chat.messages(MessageView::User).await.unwrap();
    assert_eq!(people.len(), 2);

    let model = crate::test_support::model([saying("rude"), saying("rude"), saying("rude")]);
    let agent = agent(&model).with_max_refusals(1);
    let error = run_turn_with_text(&chat, &agent, "Please.")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "denied");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn what_is_left_to_people_waits_for_them() {
    for (decision, ran_after) in [
        (ApprovalDecision::Allow, 1),
        (
            ApprovalDecision::Deny {
                reason: "no".into(),
            },
            0,
        ),
    ] {
        let (chat, _) = watched().await;
        let ran = Arc::new(AtomicU32::new(0));
        let model = model([
            calling(&[("c1", "asked", "{}"), ("c2", "add", r#"{"a":1,"b":2}"#)]),
            saying("Done."),
        ]);
        let agent = agent(&model).with_tools(tools(&ran)).unwrap();
        let turn = run_turn_with_text(&chat, &agent, "Do it.").await.unwrap();
        let TurnEnd::Waiting { calls } = turn.end else {
            panic!("expected it to wait: {turn:?}")
        };
        assert_eq!((calls.len(), ran.load(Ordering::SeqCst)), (1, 1));
        let open = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
        assert_eq!(open[0].status, RunStatus::Waiting);
        // Resumed without a decision it waits on.
        let mut run = Run::resume(&chat, turn.run, &agent).await.unwrap();
        assert!(matches!(
            run.drive().await.unwrap().end,
            TurnEnd::Waiting { .. }
        ));
        store_decision(&chat, turn.run, calls[0], decision)
            .await
            .unwrap();
        let mut run = Run::resume(&chat, turn.run, &agent).await.unwrap();
        let turn = run.drive().await.unwrap();
        assert_eq!(
            (turn.end, turn.text.as_str()),
            (TurnEnd::Completed, "Done.")
        );
        assert_eq!(ran.load(Ordering::SeqCst), 1 + ran_after);
        let again = Run::resume(&chat, turn.run, &agent).await.unwrap_err();
        assert!(again.to_string().contains("has ended"), "{again}");
    }
}

#[tokio::test]
async fn another_agent_does_a_task_on_a_branch_of_its_own() {
    let (chat, seen) = watched().await;
    let inner = model([saying("Forty-two.")]);
    let outer = model([
        calling(&[("c1", "think", r#"{"task":"What is it?"}"#)]),
        saying("It is 42."),
    ]);
    let thinker = SubAgent::new(agent(&inner), "Thinks.").with_history(ChildHistory::Fresh);
    let agent = agent(&outer).with_sub_agent("think", thinker).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Ask.").await.unwrap();
    assert_eq!(turn.text, "It is 42.");
    assert_eq!(turn.usage.responses, 3);
    assert!(!inner.requests()[0].payload.contains("Ask."));
    assert!(inner.requests()[0].payload.contains("What is it?"));
    let said = transcript(&chat).await;
    assert_eq!(said[2], "output Forty-two.\n\nmind the sign");
    let hooks = seen.lock().unwrap().join(" ");
    assert!(hooks.contains("on_spawn"), "{hooks}");
    assert!(hooks.contains("on_return Forty-two."), "{hooks}");
    let listed = list_runs(chat.engine(), chat.owner(), Some(&chat))
        .await
        .unwrap();
    assert_eq!(listed.len(), 2);
    assert!(
        listed
            .iter()
            .any(|run| run.parent.is_some() && run.depth == 1)
    );
    assert_eq!(chat.refs().await.unwrap().branches.len(), 2);
    // The child's part of the timeline stands behind the call that began it.
    let run = listed.iter().find(|run| run.parent.is_none()).unwrap();
    let spans = run_timeline(chat.engine(), chat.owner(), run);
    let spans = spans.await.unwrap();
    let shown = spans.iter().map(|span| {
        assert!(span.ended_ms.is_some_and(|ended| ended >= span.started_ms));
        let tool = span.tool.as_deref().unwrap_or_default();
        format!("{} {}{tool}", span.depth, span.kind.as_str())
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "0 run",
            "0 model",
            "0 toolthink",
            "1 run",
            "1 model",
            "0 model"
        ]
    );
}

#[tokio::test]
async fn a_run_that_is_called_off_keeps_what_is_finished() {
    let (chat, seen) = watched().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("c1", "add", r#"{"a":1,"b":2}"#), ("c2", "stop", "{}")]),
        saying("never"),
    ]);
    let handle: Arc<Mutex<Option<contexture_runs::RunHandle>>> = Arc::default();
    let held = Arc::clone(&handle);
    let mut tools = tools(&ran);
    tool(&mut tools, "stop", move || {
        held.lock().unwrap().as_ref().unwrap().abort("enough");
        Ok(ToolOutput::from("stopped"))
    });
    let agent = agent(&model).with_tools(tools).unwrap();
    let said = [Item::Message(Message::text(Role::User, "Go."))];
    let mut run = Run::begin(&chat, &agent, said).await.unwrap();
    *handle.lock().unwrap() = Some(run.handle());
    let error = run.drive().await.unwrap_err();
    assert_eq!(error.kind(), "cancelled");
    assert_eq!(model.requests().len(), 1);
    let said = transcript(&chat).await;
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[3].starts_with("output 3"));
    let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    assert_eq!(listed[0].status, RunStatus::Aborted);
    assert_eq!(listed[0].reason.as_deref(), Some("cancelled: enough"));
    assert!(
        seen.lock()
            .unwrap()
            .ends_with(&["on_complete aborted".into(), "dispose".into()])
    );
}

#[tokio::test]
async fn budgets_and_predicates_end_runs() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let call = || calling(&[("c", "add", r#"{"a":1,"b":2}"#)]);
    let model = model([call(), call(), call()]);
    let few = RunBudget {
        responses: Some(2),
        ..RunBudget::default()
    };
    let agent = agent(&model)
        .with_tools(tools(&ran))
        .unwrap()
        .with_budget(few);
    let error = run_turn_with_text(&chat, &agent, "Go.").await.unwrap_err();
    assert!(matches!(error, RunError::BudgetExceeded(_)), "{error}");
    assert_eq!(model.requests().len(), 2);

    let model = crate::test_support::model([call(), call(), call()]);
    let until = StopCondition::max_steps(3);
    let agent = crate::test_support::agent(&model)
        .with_tools(tools(&ran))
        .unwrap()
        .with_stop_condition(until);
    let turn = run_turn_with_text(&chat, &agent, "Go.").await.unwrap();
    assert!(matches!(turn.end, TurnEnd::Stopped { .. }), "{turn:?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_in_passing_is_asked_again() {
    let chat = chat().await;
    let busy = || {
        Err(contexture_models::ModelError::Unavailable {
            model: "m".into(),
            reason: "busy".into(),
            retry_after_ms: Some(100),
        })
    };
    let model = Arc::new(contexture_models::ScriptedModel::new([
        busy(),
        busy(),
        Ok(saying("There.")),
    ]));
    let retries = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&retries);
    let agent = agent(&model).with_observer(move |event: &contexture_runs::RunEvent| {
        if matches!(event.kind, RunEventKind::Retrying { .. }) {
            seen.fetch_add(1, Ordering::SeqCst);
            panic!("an observer's own fault");
        }
    });
    let turn = run_turn_with_text(&chat, &agent, "Hello?").await.unwrap();
    assert_eq!(turn.text, "There.");
    assert_eq!(retries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_arrives_while_a_run_is_busy_is_taken_in() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("c1", "add", r#"{"a":1,"b":2}"#)]),
        saying("Three."),
        saying("And hello."),
    ]);
    let (inbox, later) = (chat.clone(), chat.clone());
    let said = Arc::new(AtomicU32::new(0));
    let agent = agent(&model)
        .with_tools(tools(&ran))
        .unwrap()
        .with_observer({
            let said = Arc::clone(&said);
            move |event: &contexture_runs::RunEvent| {
                if let RunEventKind::ResponseStored { .. } = event.kind {
                    said.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    let hello = Item::Message(Message::text(Role::User, "Hello too."));
    post_to_inbox(&inbox, &hello).await.unwrap();
    let turn = run_turn_with_text(&later, &agent, "Add.").await.unwrap();
    assert_eq!(turn.end, TurnEnd::Completed);
    let said = transcript(&chat).await;
    assert_eq!(said[..2], ["user Add.", "user Hello too."]);
    assert_eq!(
        said.iter()
            .filter(|said| *said == "user Hello too.")
            .count(),
        1
    );
}

#[tokio::test]
async fn steps_of_the_program_are_done_once() {
    let chat = chat().await;
    let model = model([saying("Hi.")]);
    let agent = agent(&model);
    let said = [Item::Message(Message::text(Role::User, "Go."))];
    let mut run = Run::begin(&chat, &agent, said).await.unwrap();
    let done = AtomicU32::new(0);
    let work = || async {
        done.fetch_add(1, Ordering::SeqCst);
        Ok::<_, RunError>(done.load(Ordering::SeqCst))
    };
    assert_eq!(run.run_durable_step("count", work).await.unwrap(), 1);
    assert_eq!(run.run_durable_step("count", work).await.unwrap(), 2);
    run.store_state(&"where it stands").await.unwrap();
    let id = run.id();
    drop(run);
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    assert_eq!(run.run_durable_step("count", work).await.unwrap(), 1);
    assert_eq!(run.run_durable_step("count", work).await.unwrap(), 2);
    assert_eq!(run.run_durable_step("count", work).await.unwrap(), 3);
    let state: Option<String> = run.load_state().await.unwrap();
    assert_eq!(state.as_deref(), Some("where it stands"));
    assert_eq!(run.drive().await.unwrap().text, "Hi.");
}

#[tokio::test]
async fn a_step_that_failed_is_done_by_the_next_try() {
    let chat = chat().await;
    let model = model([saying("Hi.")]);
    let agent = agent(&model);
    let mut run = Run::begin(&chat, &agent, []).await.unwrap();
    let tries = AtomicU32::new(0);
    let work = || async {
        match tries.fetch_add(1, Ordering::SeqCst) {
            0 => Err("busy"),
            earlier => Ok(earlier),
        }
    };
    let error = run.run_durable_step("charge", work).await.unwrap_err();
    assert_eq!(error.to_string(), "step \"charge\" failed after 1 attempts");
    assert_eq!(run.run_durable_step("charge", work).await.unwrap(), 1);
    let id = run.id();
    drop(run);
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    assert_eq!(run.run_durable_step("charge", work).await.unwrap(), 1);
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_a_step_gives_can_be_written_and_read_again() {
    let chat = chat().await;
    let model = model([saying("Hi.")]);
    let agent = agent(&model);
    let mut run = Run::begin(&chat, &agent, []).await.unwrap();
    let pairs = || async { Ok::<_, RunError>(BTreeMap::from([((1, 2), 3)])) };
    let error = run.run_durable_step("pairs", pairs).await.unwrap_err();
    assert!(matches!(error, RunError::ItemMismatch { .. }), "{error}");
    let nan = || async { Ok::<_, RunError>(f64::NAN) };
    let error = run.run_durable_step("nan", nan).await.unwrap_err();
    assert!(error.to_string().contains("step \"nan\""), "{error}");
    // What is not written as such is the same in every process.
    let maybe = || async { Ok::<_, RunError>(Some(f64::NAN)) };
    assert_eq!(run.run_durable_step("maybe", maybe).await.unwrap(), None);
    let id = run.id();
    drop(run);
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    assert_eq!(run.run_durable_step("maybe", maybe).await.unwrap(), None);
    drop(run);
    // A program that asks for something else is told so, and nothing is done again.
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    let done = AtomicU32::new(0);
    let other = || async { Ok::<_, RunError>(done.fetch_add(1, Ordering::SeqCst)) };
    let error = run.run_durable_step("maybe", other).await.unwrap_err();
    assert!(matches!(error, RunError::ItemMismatch { .. }), "{error}");
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_child_is_taken_back_once() {
    let (chat, seen) = watched().await;
    let (inner, outer) = (model([saying("Forty-two.")]), model([saying("It is 42.")]));
    let below = SubAgent::new(agent(&inner), "Thinks.");
    let agent = agent(&outer);
    let said = [Item::Message(Message::text(Role::User, "Ask."))];
    let mut run = Run::begin(&chat, &agent, said).await.unwrap();
    for _process in 0..2 {
        for _time in 0..2 {
            let mut child = run.spawn_child("below", &below, "Think.").await.unwrap();
            let turn = child.drive().await;
            run.join_child(&child, &turn).await.unwrap();
            assert_eq!(run.usage().responses, 1);
        }
        let id = run.id();
        drop(run);
        run = Run::resume(&chat, id, &agent).await.unwrap();
    }
    assert_eq!(run.drive().await.unwrap().usage.responses, 2);
    let seen = seen.lock().unwrap();
    let returned = seen.iter().filter(|hook| hook.starts_with("on_return"));
    assert_eq!(returned.count(), 1, "{seen:?}");
}
