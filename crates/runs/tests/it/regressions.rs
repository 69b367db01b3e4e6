//! What goes wrong in loops of agents, and does not here.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contexture_compile::{Contribution, Target};
use contexture_engine::{Conversation, Engine, TestClock};
use contexture_ir::{Item, Message, Raw, Role};
use contexture_layers::builtin::{Guardrails, Scratchpad, ScratchpadContent};
use contexture_layers::{
    HookContext, Layer, LayerError, LayerId, LayerSpec, Layers, ObservedItems, RecallInput, Rerun,
    RunEnd, ToolGate,
};
use contexture_models::{ModelError, ModelResponse, ScriptedModel};
use contexture_runs::{
    Agent, ApprovalDecision, Run, RunBudget, RunError, RunEvent, RunEventKind, RunHandle,
    RunStatus, SubAgent, ToolBox, ToolCall, ToolConcurrency, ToolOptions, ToolOutput, TurnEnd,
    list_runs, post_to_inbox, run_turn_with_text, store_decision,
};
use contexture_store::PathEnd;
use contexture_tools::{Policy, Tool};

use crate::test_support::{agent, calling, chat, model, saying, tools, transcript};

const ADD: (&str, &str, &str) = ("c1", "add", r#"{"a":1,"b":2}"#);

fn said(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

fn refusing() -> ModelError {
    ModelError::Refused {
        model: "m".into(),
        reason: "no".into(),
        too_long: None,
    }
}

fn failing(answers: impl IntoIterator<Item = ModelResponse>) -> Arc<ScriptedModel> {
    let answers = answers.into_iter().map(Ok).chain([Err(refusing())]);
    Arc::new(ScriptedModel::new(answers))
}

fn pad() -> Scratchpad {
    Scratchpad::with_sections([("goal", "The goal")]).unwrap()
}

async fn goal(chat: &Conversation) -> String {
    let pad: ScratchpadContent = chat.layer::<Scratchpad>().unwrap().state().await.unwrap();
    pad.get("goal")
        .map_or_else(String::new, ToString::to_string)
}

/// Counts what it is shown, and writes down its beginnings and ends.
struct Ends(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Layer for Ends {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("ends").unwrap())
    }

    async fn init(&self, _: &HookContext) -> Result<u32, LayerError> {
        self.0.lock().unwrap().push("init".to_owned());
        Ok(100)
    }

    async fn recall(&self, _: &u32, _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        state: &mut u32,
        seen: &ObservedItems<'_>,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        *state += u32::try_from(seen.items.len()).unwrap();
        Ok(())
    }

    async fn on_complete(
        &self,
        _: &mut u32,
        end: &RunEnd,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        let end = match end {
            RunEnd::Completed => "completed",
            RunEnd::Failed { .. } => "failed",
            RunEnd::Aborted { .. } => "aborted",
        };
        self.0.lock().unwrap().push(end.to_owned());
        Ok(())
    }

    async fn dispose(&self, _: &u32) -> Result<(), LayerError> {
        self.0.lock().unwrap().push("disposed".to_owned());
        Ok(())
    }
}

#[tokio::test]
async fn failed_turn_keeps_history_and_notifies_layers() {
    let chat = chat().await;
    let ends = Arc::new(Mutex::new(Vec::new()));
    chat.set_layers(Layers::new().with_layer(Ends(Arc::clone(&ends))).unwrap());
    let ran = Arc::new(AtomicU32::new(0));
    let failing = failing([calling(&[ADD])]);
    let agent = agent(&failing).with_tools(tools(&ran)).unwrap();
    let error = run_turn_with_text(&chat, &agent, "Pay.").await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    assert_eq!(
        transcript(&chat).await,
        ["user Pay.", "call add", "output 3"]
    );
    assert_eq!(*ends.lock().unwrap(), ["init", "failed", "disposed"]);
    let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    assert_eq!(listed[0].status, RunStatus::Failed);
    assert!(listed[0].reason.is_some() && listed[0].result.is_none());

    // The next turn knows of it, and an earlier answer never stands for a later failure.
    let model = model([saying("Paid.")]);
    let next = crate::test_support::agent(&model);
    let turn = run_turn_with_text(&chat, &next, "Well?").await.unwrap();
    assert_eq!(turn.text, "Paid.");
    assert!(model.requests()[0].payload.contains("Pay."));
    let again = run_turn_with_text(&chat, &next, "Again?").await;
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test]
async fn what_is_kept_stands_in_the_order_the_model_saw() {
    let chat = chat().await;
    let mut tools = ToolBox::new(Policy::default());
    let inbox = chat.clone();
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let interrupted = move |_: ToolCall| {
        let inbox = inbox.clone();
        async move {
            post_to_inbox(&inbox, &said("Wait: in euros."))
                .await
                .unwrap();
            Ok(ToolOutput::from("ten"))
        }
    };
    let tool = Tool::function("price", "A price.", schema);
    tools.add_tool(tool, interrupted).unwrap();
    let model = model([calling(&[("c1", "price", "{}")]), saying("Ten euros.")]);
    let agent = agent(&model).with_tools(tools).unwrap();
    run_turn_with_text(&chat, &agent, "How much?")
        .await
        .unwrap();
    assert_eq!(
        transcript(&chat).await,
        [
            "user How much?",
            "call price",
            "output ten",
            "user Wait: in euros.",
            "assistant Ten euros."
        ]
    );
    let asked = model.requests();
    let place = |text: &str| asked[1].payload.find(text).unwrap();
    assert!(place("How much?") < place("\"ten\"") && place("\"ten\"") < place("in euros"));
}

#[tokio::test(start_paused = true)]
async fn what_is_done_is_kept_while_others_are_at_work() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let mut tools = ToolBox::new(Policy::default());
    let options = ToolOptions {
        rerun: Rerun::Repeat,
        concurrency: ToolConcurrency::Parallel,
        ..ToolOptions::default()
    };
    // The slow one is cut off when it runs first.
    for name in ["slow", "quick"] {
        let ran = Arc::clone(&ran);
        let work = move |_: ToolCall| {
            let earlier = ran.fetch_add(1, Ordering::SeqCst);
            async move {
                match (name, earlier) {
                    ("slow", 0) => std::future::pending().await,
                    _ => Ok(ToolOutput::from(name)),
                }
            }
        };
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let tool = Tool::function(name, "Works.", schema);
        tools.add_tool_with(tool, options, work).unwrap();
    }
    let model = model([
        calling(&[("c1", "slow", "{}"), ("c2", "quick", "{}")]),
        saying("Done."),
    ]);
    let agent = agent(&model).with_tools(tools).unwrap();
    let mut run = Run::begin(&chat, &agent, [said("Work.")]).await.unwrap();
    let cut = tokio::time::timeout(Duration::from_secs(1), run.drive()).await;
    assert!(cut.is_err(), "{cut:?}");
    let id = run.id();
    drop(run);
    let kept = ["user Work.", "call slow", "call quick", "output quick"];
    assert_eq!(transcript(&chat).await, kept);

    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    assert_eq!(run.drive().await.unwrap().text, "Done.");
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    assert_eq!(transcript(&chat).await[4], "output slow");
    // The model is told in the order in which it called.
    let told = &model.requests()[1].payload;
    let place = |text: &str| told.find(text).unwrap();
    assert!(
        place(r#""content":"slow""#) < place(r#""content":"quick""#),
        "{told}"
    );
}

#[tokio::test]
async fn answers_that_were_refused_are_kept_and_counted() {
    let chat = chat().await;
    let short = Guardrails::new().with_guard(contexture_layers::builtin::MaxLength::new(5));
    chat.set_layers(Layers::new().with_layer(short).unwrap());
    let model = model([saying("far too long"), saying("Short")]);
    let turn = run_turn_with_text(&chat, &agent(&model), "Say.")
        .await
        .unwrap();
    assert_eq!((turn.text.as_str(), turn.usage.responses), ("Short", 2));
    let answers = chat
        .response_ids(PathEnd::Branch(chat.branch()))
        .await
        .unwrap();
    assert_eq!(answers.len(), 2);
    assert!(
        transcript(&chat)
            .await
            .contains(&"assistant far too long".to_owned())
    );
}

#[tokio::test]
async fn what_a_child_used_counts_though_it_failed() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let inner = failing([calling(&[ADD])]);
    let outer = model([
        calling(&[("c1", "think", r#"{"task":"What is it?"}"#)]),
        saying("Nobody knows."),
    ]);
    let thinker = SubAgent::new(agent(&inner).with_tools(tools(&ran)).unwrap(), "Thinks.");
    let agent = agent(&outer).with_sub_agent("think", thinker).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Ask.").await.unwrap();
    assert_eq!(turn.usage.responses, 3);
    assert_eq!(turn.usage.tokens.input, Some(30));
    let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    let child = listed.iter().find(|run| run.parent.is_some()).unwrap();
    assert_eq!(child.status, RunStatus::Failed);
    assert_eq!(child.usage.unwrap().responses, 1);
}

#[tokio::test]
async fn resumed_run_keeps_layer_states_usage_and_budget() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let ends = Arc::new(Mutex::new(Vec::new()));
    let layers = Layers::new().with_layer(Ends(Arc::clone(&ends))).unwrap();
    let layers =
        layers.with_layer(Guardrails::new().with_rule("asked", ToolGate::Ask("sure?".into())));
    let layers = layers.unwrap();
    chat.set_layers(layers.clone());
    let two = RunBudget {
        responses: Some(2),
        ..RunBudget::default()
    };
    let model = model([calling(&[("c1", "asked", "{}")]), calling(&[ADD])]);
    let agent = agent(&model)
        .with_tools(tools(&ran))
        .unwrap()
        .with_budget(two);
    let turn = run_turn_with_text(&chat, &agent, "Do it.").await.unwrap();
    let TurnEnd::Waiting { calls } = turn.end else {
        unreachable!("{turn:?}")
    };

    // Another process.
    let engine = Engine::new(Arc::clone(chat.engine().store()));
    let engine = engine.with_clock(TestClock::new(2_000)).with_layers(layers);
    let chat = engine.conversation("c").open().await.unwrap();
    store_decision(&chat, turn.run, calls[0], ApprovalDecision::Allow)
        .await
        .unwrap();
    let mut run = Run::resume(&chat, turn.run, &agent).await.unwrap();
    assert_eq!(run.usage().responses, 1);
    assert_eq!(run.usage().tokens, turn.usage.tokens);
    assert_eq!(*run.layers().state::<Ends>().unwrap(), 102);
    let error = run.drive().await.unwrap_err();
    assert!(matches!(error, RunError::BudgetExceeded(_)), "{error}");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(model.requests().len(), 2);
    assert_eq!(*ends.lock().unwrap(), ["init", "failed", "disposed"]);
}

#[tokio::test]
async fn runs_below_runs_come_to_an_end() {
    let chat = chat().await;
    let model = model([]);
    let below = SubAgent::new(agent(&model), "Goes on.");
    let mut run = Run::begin(&chat, &agent(&model), [said("Go.")])
        .await
        .unwrap();
    let error = loop {
        match run.spawn_child("below", &below, "Go on.").await {
            Ok(child) => run = child,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, RunError::Depth { .. }), "{error}");
    assert_eq!(run.depth() as usize, RunError::MAX_DEPTH);
}

#[tokio::test]
async fn layer_functions_obey_policy_and_guardrails_by_name() {
    for (policy, layers) in [
        (
            Policy::default().deny("scratchpad_update"),
            Layers::new().with_layer(pad()).unwrap(),
        ),
        (
            Policy::default(),
            Layers::new()
                .with_layer(pad())
                .unwrap()
                .with_layer(
                    Guardrails::new().with_rule("scratchpad_*", ToolGate::Deny("not now".into())),
                )
                .unwrap(),
        ),
    ] {
        let chat = chat().await;
        chat.set_layers(layers);
        let update = ("c1", "scratchpad_update", r#"{"goal":"changed"}"#);
        let model = model([calling(&[update]), saying("Well.")]);
        let agent = agent(&model).with_tools(ToolBox::new(policy)).unwrap();
        run_turn_with_text(&chat, &agent, "Change it.")
            .await
            .unwrap();
        assert_eq!(goal(&chat).await, "");
    }
    // And run where nobody is against it.
    let chat = chat().await;
    chat.set_layers(Layers::new().with_layer(pad()).unwrap());
    let update = ("c1", "scratchpad_update", r#"{"goal":"changed"}"#);
    let model = model([calling(&[update]), saying("Well.")]);
    run_turn_with_text(&chat, &agent(&model), "Change it.")
        .await
        .unwrap();
    assert_eq!(goal(&chat).await, r#""changed""#);
}

#[tokio::test]
async fn a_child_changes_its_own_states() {
    let chat = chat().await;
    chat.set_layers(Layers::new().with_layer(pad()).unwrap());
    let outer = Raw::parse(r#"{"goal":"outer"}"#).unwrap();
    chat.call_function("scratchpad_update", &outer)
        .await
        .unwrap();
    let update = ("c1", "scratchpad_update", r#"{"goal":"inner"}"#);
    let inner = model([calling(&[update]), saying("Done.")]);
    let outer = model([
        calling(&[("c1", "think", r#"{"task":"Think."}"#)]),
        saying("Done."),
    ]);
    let agent_above = agent(&outer)
        .with_sub_agent("think", SubAgent::new(agent(&inner), "Thinks."))
        .unwrap();
    run_turn_with_text(&chat, &agent_above, "Go.")
        .await
        .unwrap();
    // It began with its parent's.
    assert!(inner.requests()[0].payload.contains("outer"));
    assert!(inner.requests()[1].payload.contains("inner"));
    assert_eq!(goal(&chat).await, r#""outer""#);
    assert!(outer.requests()[1].payload.contains(r#"outer"#));
}

#[tokio::test]
async fn what_a_model_thought_goes_back_to_it_with_its_calls() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let thought = ModelResponse::new(
        r#"{"id":"resp_1","object":"response","created_at":0,"status":"completed","model":"gpt-5","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAsealed"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"add","arguments":"{\"a\":1,\"b\":2}","status":"completed"}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15,"output_tokens_details":{"reasoning_tokens":3}}}"#.to_owned(),
    );
    let text = contexture_models::text_response(contexture_wire::Format::OpenAiResponses, "Three.");
    let model = model([thought, ModelResponse::new(text)]);
    let agent = Agent::new("thinker", model.clone(), Target::openai_responses("gpt-5"));
    let turn = run_turn_with_text(&chat, &agent.with_tools(tools(&ran)).unwrap(), "Add.")
        .await
        .unwrap();
    assert_eq!(turn.text, "Three.");
    assert_eq!(turn.usage.tokens.reasoning, Some(3));
    let second = &model.requests()[1].payload;
    let place = |text: &str| second.find(text).unwrap();
    assert!(
        place("gAAAsealed") < place("function_call_output"),
        "{second}"
    );
}

#[tokio::test]
async fn an_answer_that_is_called_off_midway_is_kept_for_people_only() {
    let chat = chat().await;
    let piece = |text: &str| {
        let delta = serde_json::json!({"id":"x","object":"chat.completion.chunk","created":0,
            "model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":text},"finish_reason":null}]});
        Ok(delta.to_string())
    };
    let streams = [vec![piece("Half "), piece("of it"), piece("never seen")]];
    let model = Arc::new(ScriptedModel::with_streams(streams));
    let handle: Arc<Mutex<Option<RunHandle>>> = Arc::default();
    let (held, heard) = (Arc::clone(&handle), Arc::new(AtomicU32::new(0)));
    let agent = agent(&model).with_observer(move |event: &RunEvent| {
        if let RunEventKind::Delta(delta) = &event.kind
            && format!("{delta:?}").contains("Half")
        {
            heard.fetch_add(1, Ordering::SeqCst);
            held.lock().unwrap().as_ref().unwrap().abort("enough");
        }
    });
    let mut run = Run::begin(&chat, &agent, [said("Speak.")]).await.unwrap();
    *handle.lock().unwrap() = Some(run.handle());
    let error = run.drive().await.unwrap_err();
    assert_eq!(error.kind(), "cancelled");
    let kept = transcript(&chat).await;
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[1].starts_with("assistant Half"), "{kept:?}");

    let model = crate::test_support::model([saying("Again.")]);
    run_turn_with_text(&chat, &crate::test_support::agent(&model), "Go on.")
        .await
        .unwrap();
    assert!(!model.requests()[0].payload.contains("Half"));
}

#[tokio::test]
async fn a_refusal_is_no_empty_answer() {
    let chat = chat().await;
    let body = r#"{"id":"x","object":"chat.completion","created":0,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I will not."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let model = model([ModelResponse::new(body.to_owned())]);
    let turn = run_turn_with_text(&chat, &agent(&model), "Do it.")
        .await
        .unwrap();
    assert_eq!(turn.text, "I will not.");
}
