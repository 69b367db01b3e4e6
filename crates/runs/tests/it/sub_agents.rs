//! Sub-agents: side by side, within one budget, with what they are given by their parent and by themselves.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use async_trait::async_trait;
use contexture_compile::{Contribution, Target};
use contexture_ir::{hint, role};
use contexture_layers::{
    ChildEnd, ChildResult, HookContext, Layer, LayerError, LayerId, LayerSpec, Layers, RecallInput,
};
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse, ScriptedModel};
use contexture_render::MarkdownRenderer;
use contexture_runs::{
    Agent, Run, RunBudget, RunError, SubAgent, ToolConcurrency, run_turn_with_text,
};
use tokio::time::Instant;

use crate::test_support::{
    agent, answers_once, calling, chat, model, said, saying, tools, transcript,
};

/// Takes a second for each answer.
#[derive(Debug)]
struct Slow(Arc<ScriptedModel>);

#[async_trait]
impl Model for Slow {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.answer(request).await
    }
}

fn slow(answers: impl IntoIterator<Item = ModelResponse>) -> Agent {
    let target = Target::openai_chat("gpt-4o");
    Agent::new("slow", Arc::new(Slow(model(answers))), target)
}

fn three_tasks() -> ModelResponse {
    calling(&[
        ("c1", "one", r#"{"task":"t1"}"#),
        ("c2", "two", r#"{"task":"t2"}"#),
        ("c3", "three", r#"{"task":"t3"}"#),
    ])
}

fn with_three(desk: Agent, each: impl Fn(&str) -> SubAgent) -> Agent {
    let names = ["one", "two", "three"];
    let added = names
        .iter()
        .try_fold(desk, |desk, name| desk.with_sub_agent(*name, each(name)));
    added.unwrap()
}

#[tokio::test(start_paused = true)]
async fn sub_agents_of_one_answer_work_side_by_side() {
    for (concurrency, seconds) in [
        (ToolConcurrency::Parallel, 1),
        (ToolConcurrency::Exclusive, 3),
    ] {
        let chat = chat().await;
        let desk = model([three_tasks(), saying("done")]);
        let desk = with_three(agent(&desk), |name| {
            SubAgent::new(slow([saying(&format!("{name} says"))]), "Works.")
                .with_concurrency(concurrency)
        });
        let start = Instant::now();
        let turn = run_turn_with_text(&chat, &desk, "go").await.unwrap();
        assert_eq!(start.elapsed().as_secs(), seconds);
        assert_eq!(turn.usage.responses, 5);
        let said = transcript(&chat).await;
        for name in ["one", "two", "three"] {
            let output = format!("output {name} says");
            assert!(said.contains(&output), "{said:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sub_agents_side_by_side_share_one_budget() {
    let chat = chat().await;
    let desk = model([three_tasks(), saying("done")]);
    let add = || calling(&[("a", "add", r#"{"a":1,"b":2}"#)]);
    let desk = with_three(agent(&desk), |_| {
        let worker = slow(std::iter::repeat_with(add).take(9));
        let tools = tools(&Arc::new(AtomicU32::new(0)));
        SubAgent::new(worker.with_tools(tools).unwrap(), "Works.")
    });
    let budget = RunBudget {
        responses: Some(5),
        ..RunBudget::default()
    };
    let mut run = Run::begin(&chat, &desk.with_budget(budget), [said("go")])
        .await
        .unwrap();
    let error = run.drive().await.unwrap_err();
    assert!(matches!(error, RunError::BudgetExceeded(_)), "{error}");
    // The desk's one, and one of each child; then all three begin a second one, before any of these counts.
    let used = run.usage().responses;
    assert!((5..=7).contains(&used), "{used}");
}

#[tokio::test]
async fn a_child_begins_with_a_copy_of_its_parents_state() {
    let chat = chat().await;
    let one = model([saying("one")]);
    let desk = agent(&model([saying("desk")]));
    let mut run = Run::begin(&chat, &desk, [said("go")]).await.unwrap();
    run.store_state(&7).await.unwrap();
    let below = SubAgent::new(agent(&one), "Works.");
    let mut child = run.spawn_child("one", &below, "t").await.unwrap();
    assert_eq!(child.load_state::<u32>().await.unwrap(), Some(7));
    child.store_state(&8).await.unwrap();
    assert_eq!(run.load_state::<u32>().await.unwrap(), Some(7));
    let turn = child.drive().await;
    run.join_child(&child, &turn).await.unwrap();
    assert_eq!(run.load_state::<u32>().await.unwrap(), Some(7));
}

#[tokio::test]
async fn a_model_that_never_ends_is_stopped_by_default() {
    let endless = |limit: u32| {
        let asked = AtomicU32::new(0);
        Arc::new(ScriptedModel::with_fn(move |_| {
            let asked = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            match asked < limit {
                true => Ok(calling(&[("a", "add", r#"{"a":1,"b":2}"#)])),
                false => Ok(saying("at last")),
            }
        }))
    };
    let chat = chat().await;
    let agent_of = |model: &Arc<ScriptedModel>| {
        agent(model)
            .with_tools(tools(&Arc::new(AtomicU32::new(0))))
            .unwrap()
    };
    let model = endless(40);
    let error = run_turn_with_text(&chat, &agent_of(&model), "go")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "too_many_answers", "{error}");
    assert_eq!(model.requests().len(), 32);
    let model = endless(40);
    let unbounded = agent_of(&model).with_max_answers(None);
    let turn = run_turn_with_text(&chat, &unbounded, "go").await.unwrap();
    assert_eq!(
        (turn.text.as_str(), model.requests().len()),
        ("at last", 41)
    );

    // A resumed run counts what it had before.
    let (hanging, hung) = answers_once(calling(&[("a", "add", r#"{"a":1,"b":2}"#)]));
    let ran = Arc::new(AtomicU32::new(0));
    let bounded = hanging.with_tools(tools(&ran)).unwrap().with_max_answers(2);
    let mut run = Run::begin(&chat, &bounded, [said("go")]).await.unwrap();
    let id = run.id();
    tokio::select! {
        ended = run.drive() => panic!("{ended:?}"),
        () = hung.notified() => drop(run),
    }
    let model = endless(40);
    let bounded = agent_of(&model).with_max_answers(2);
    let mut run = Run::resume(&chat, id, &bounded).await.unwrap();
    let error = run.drive().await.unwrap_err();
    assert!(
        matches!(error, RunError::TooManyAnswers { limit: 2 }),
        "{error}"
    );
    assert_eq!(model.requests().len(), 1);
}

/// Says its word, and what it makes of the results of children.
struct Says {
    word: &'static str,
    result: Option<&'static str>,
}

#[async_trait]
impl Layer for Says {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("says").unwrap())
    }

    async fn recall(
        &self,
        _: &u32,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        Ok(vec![call.contribution_from_fragments([hint(self.word)])])
    }

    async fn on_return(
        &self,
        _: &mut u32,
        _: &u32,
        end: &ChildEnd,
        _: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        Ok(match self.result {
            None => ChildResult::Keep,
            Some(made) => {
                let found = end.result.as_deref().unwrap_or("nothing");
                ChildResult::Replace(format!("{made} of {found}"))
            }
        })
    }
}

fn layers(word: &'static str, result: Option<&'static str>) -> Layers {
    Layers::new().with_layer(Says { word, result }).unwrap()
}

#[tokio::test]
async fn each_agent_has_its_own_layers_and_renderer() {
    let chat = chat().await;
    chat.set_layers(layers("of the chat", None));
    let (own, plain, desk) = (
        model([saying("own")]),
        model([saying("plain")]),
        model([
            calling(&[
                ("c1", "own", r#"{"task":"t"}"#),
                ("c2", "plain", r#"{"task":"t"}"#),
            ]),
            saying("one"),
        ]),
    );
    let own_agent = agent(&own)
        .with_instructions([role("You are own.")])
        .unwrap()
        .with_layers(layers("of the child", None))
        .with_renderer(Arc::new(MarkdownRenderer::default()));
    let desk_agent = agent(&desk)
        .with_layers(layers("of the desk", None))
        .with_sub_agent("own", SubAgent::new(own_agent, "Works."))
        .and_then(|desk| desk.with_sub_agent("plain", SubAgent::new(agent(&plain), "Works.")))
        .unwrap();
    run_turn_with_text(&chat, &desk_agent, "go").await.unwrap();
    for (model, word) in [
        (&own, "of the child"),
        (&plain, "of the desk"),
        (&desk, "of the desk"),
    ] {
        for request in model.requests() {
            for other in ["of the chat", "of the child", "of the desk"] {
                let says = request.payload.contains(other);
                assert_eq!(says, other == word, "{word}: {}", request.payload);
            }
        }
    }
    assert!(!own.requests()[0].payload.contains("<role>"));
    assert!(plain.requests()[0].payload.contains("<hint>"));
    // The handle of the program is as it was.
    let next = model([saying("hello")]);
    run_turn_with_text(&chat, &agent(&next), "and now")
        .await
        .unwrap();
    assert!(next.requests()[0].payload.contains("of the chat"));
}

#[tokio::test]
async fn a_layer_may_change_what_a_child_gave() {
    let chat = chat().await;
    let desk = model([calling(&[("c1", "one", r#"{"task":"t"}"#)]), saying("done")]);
    let below = SubAgent::new(agent(&model([saying("a secret")])), "Works.");
    let desk_agent = agent(&desk)
        .with_layers(layers("w", Some("a summary")))
        .with_sub_agent("one", below.clone())
        .unwrap();
    run_turn_with_text(&chat, &desk_agent, "go").await.unwrap();
    assert_eq!(transcript(&chat).await[2], "output a summary of a secret");

    // A program that spawns by itself is told; a second time nothing is done, so nothing is changed.
    let below = SubAgent::new(agent(&model([saying("more")])), "Works.");
    let mut run = Run::begin(&chat, &desk_agent, [said("go")]).await.unwrap();
    let mut child = run.spawn_child("n", &below, "t").await.unwrap();
    let turn = child.drive().await;
    let made = run.join_child(&child, &turn).await.unwrap();
    assert_eq!(made, ChildResult::Replace("a summary of more".to_owned()));
    let again = run.join_child(&child, &turn).await.unwrap();
    assert_eq!(again, ChildResult::Keep);
}
