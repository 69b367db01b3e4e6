//! What tools, approvers and steps of the program are given of their run, and what a turn tells of its last answer.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use contexture_compile::Target;
use contexture_ir::{Item, Message, Raw, Role, RunId};
use contexture_layers::ToolRequest;
use contexture_models::{ModelResponse, ScriptedModel};
use contexture_runs::{
    Agent, AnswerKind, ApprovalDecision, Approver, Channel, Run, RunContext, RunEvent,
    RunEventKind, SubAgent, ToolBox, ToolCall, ToolFailure, ToolOutput, TurnEnd, WaitTimeout,
    run_turn_with_text,
};
use contexture_tools::{Policy, Tool};

use crate::test_support::{agent, calling, chat, model, saying};

struct Till(&'static str);
struct SignedIn(&'static str);

/// A tool that says what it is given.
fn looking(policy: Policy) -> ToolBox {
    let mut tools = ToolBox::new(policy);
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let look = |call: ToolCall| async move {
        let run = call
            .run
            .ok_or_else(|| ToolFailure::from_message("no run"))?;
        run.report_progress("half done");
        let till = run.value::<Till>().map_or("none", |till| till.0);
        let who = run.value::<SignedIn>().map_or("nobody", |who| who.0);
        let last = run.last_step().unwrap();
        let jobs = Channel::<String>::queue("jobs");
        run.channels()
            .send(
                &jobs,
                run.agent().to_owned(),
                WaitTimeout::default(),
                run.abort(),
            )
            .await
            .map_err(ToolFailure::from_message)?;
        let usage = run.usage();
        Ok(ToolOutput::from(format!(
            "{} {} {} step {} depth {} till {till} for {who} after {} answers, asked by {} tokens {}",
            run.agent(),
            run.owner(),
            run.conversation().branch().as_str().starts_with("run-"),
            run.step(),
            run.depth(),
            usage.responses,
            last.calls[0].name,
            last.report.totals.tokens > 0,
        )))
    };
    tools
        .add_tool(Tool::function("look", "Looks.", schema), look)
        .unwrap();
    tools
}

fn last_output(model: &Arc<ScriptedModel>, at: usize) -> String {
    model.requests()[at].payload.clone()
}

#[tokio::test]
async fn a_tool_is_given_its_run() {
    let chat = chat().await;
    let inner = model([calling(&[("i1", "look", "{}")]), saying("Seen.")]);
    let outer = model([
        calling(&[("o1", "look", "{}"), ("o2", "below", r#"{"task":"Look."}"#)]),
        saying("Both seen."),
    ]);
    let seen: Arc<Mutex<Vec<(RunId, RunEventKind)>>> = Arc::default();
    let events = Arc::clone(&seen);
    let below = agent(&inner)
        .with_tools(looking(Policy::default()))
        .unwrap()
        .with_value(Till("two"));
    let agent = Agent::new("desk", outer.clone(), Target::openai_chat("gpt-4o"))
        .with_tools(looking(Policy::default()))
        .unwrap()
        .with_sub_agent("below", SubAgent::new(below, "Looks."))
        .unwrap()
        .with_value(Till("one"))
        .with_value(SignedIn("ada"))
        .with_observer(move |event: &RunEvent| {
            events.lock().unwrap().push((event.run, event.kind.clone()));
        });
    let mut run = Run::begin(
        &chat,
        &agent,
        [Item::Message(Message::text(Role::User, "Look."))],
    )
    .await
    .unwrap();
    let channels = run.handle().channels().clone();
    let turn = run.drive().await.unwrap();
    assert_eq!(turn.text, "Both seen.");
    let outer_said = last_output(&outer, 1);
    assert!(outer_said.contains("desk local false step 2 depth 0 till one for ada after 1 answers, asked by look tokens true"), "{outer_said}");
    let inner_said = last_output(&inner, 1);
    // The child has its own till, and whoever is signed in from its parent.
    assert!(inner_said.contains("tester local true step 2 depth 1 till two for ada after 1 answers, asked by look tokens true"), "{inner_said}");
    let jobs = Channel::<String>::queue("jobs");
    assert_eq!(channels.try_recv(&jobs).unwrap().as_deref(), Some("desk"));
    assert_eq!(channels.try_recv(&jobs).unwrap().as_deref(), Some("tester"));
    let seen = seen.lock().unwrap();
    let progress: Vec<_> = seen
        .iter()
        .filter_map(|(run, kind)| match kind {
            RunEventKind::Progress {
                node: Some(_),
                text,
            } => Some((*run, text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(progress.len(), 2);
    assert_eq!(progress[0], (turn.run, "half done"));
    assert_ne!(progress[1].0, turn.run);
}

#[derive(Clone, Debug, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Approver for Asked {
    async fn decide(&self, call: &ToolRequest, _: &str, run: &RunContext) -> ApprovalDecision {
        let line = format!("{} of {} in step {}", call.tool, run.agent(), run.step());
        self.0.lock().unwrap().push(line);
        ApprovalDecision::Deny {
            reason: "not today".into(),
        }
    }
}

#[tokio::test]
async fn an_approver_is_given_the_run_and_what_it_decides_is_told() {
    let chat = chat().await;
    let model = model([calling(&[("a", "look", "{}")]), saying("Well.")]);
    let asked = Asked::default();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let events = Arc::clone(&seen);
    let agent = agent(&model)
        .with_tools(looking(Policy::default().ask("look")))
        .unwrap()
        .with_approver(asked.clone())
        .with_observer(move |event: &RunEvent| match &event.kind {
            RunEventKind::ApprovalAsked { tool, .. } => {
                events.lock().unwrap().push(format!("asked {tool}"));
            }
            RunEventKind::ApprovalDecided { decision, .. } => {
                events.lock().unwrap().push(format!("{decision:?}"));
            }
            _ => {}
        });
    run_turn_with_text(&chat, &agent, "Look.").await.unwrap();
    assert_eq!(*asked.0.lock().unwrap(), ["look of tester in step 1"]);
    assert_eq!(
        *seen.lock().unwrap(),
        ["asked look", "Deny { reason: \"not today\" }"]
    );
}

/// An answer with this message and this reason for its end.
fn ending(message: &str, finish: &str) -> ModelResponse {
    ModelResponse::new(format!(
        r#"{{"id":"r","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{{"index":0,"message":{message},"finish_reason":"{finish}"}}],"usage":{{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}}}"#
    ))
}

#[tokio::test]
async fn a_turn_tells_good_refused_cut_and_empty_answers_apart() {
    for (message, finish, kind, asked) in [
        (
            r#"{"role":"assistant","content":"Four."}"#,
            "stop",
            AnswerKind::Complete,
            1,
        ),
        (
            r#"{"role":"assistant","content":null,"refusal":"I will not."}"#,
            "stop",
            AnswerKind::Refused,
            1,
        ),
        (
            r#"{"role":"assistant","content":"The ans"}"#,
            "content_filter",
            AnswerKind::Refused,
            1,
        ),
        (
            r#"{"role":"assistant","content":"The answer is"}"#,
            "length",
            AnswerKind::Cut,
            1,
        ),
        // Asked for three times.
        (
            r#"{"role":"assistant","content":""}"#,
            "stop",
            AnswerKind::Empty,
            3,
        ),
    ] {
        let chat = chat().await;
        let model = model((0..4).map(|_| ending(message, finish)));
        let turn = run_turn_with_text(&chat, &agent(&model), "Two and two?")
            .await
            .unwrap();
        assert_eq!(turn.end, TurnEnd::Completed);
        assert_eq!(turn.answer_kind(), Some(kind), "{message}");
        let last = turn.last_step.as_ref().unwrap();
        assert_eq!(last.finish.as_ref().unwrap().as_str(), finish);
        // The report of the request, with tokens per segment.
        let segments: u64 = last
            .report
            .segments
            .iter()
            .map(|segment| segment.tokens)
            .sum();
        assert_eq!(segments, last.report.totals.tokens);
        assert_eq!(last.usage.tokens.input, Some(10));
        assert_eq!(model.requests().len(), asked, "{message}");
    }
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again() {
    let chat = chat().await;
    let empty = || ending(r#"{"role":"assistant","content":""}"#, "stop");
    let model = model([empty(), empty(), saying("Four.")]);
    let turn = run_turn_with_text(&chat, &agent(&model), "Two and two?")
        .await
        .unwrap();
    assert_eq!((turn.text.as_str(), turn.usage.responses), ("Four.", 3));
    assert_eq!(turn.answer_kind(), Some(AnswerKind::Complete));
}
