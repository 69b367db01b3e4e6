//! Laws of runs: usage is conserved whatever fails, what is denied never runs by any way, and what others append while a
//! run goes on is neither lost nor in its way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use contexture_compile::Target;
use contexture_engine::Conversation;
use contexture_ir::user;
use contexture_layers::Layers;
use contexture_layers::builtin::memory::Memory;
use contexture_models::{Model, ModelError, ModelRequest, ModelResponse};
use contexture_runs::{
    Agent, ApprovalDecision, Approver, RunError, SubAgent, ToolBox, ToolOutput, TurnEnd, list_runs,
    run_turn_with_text,
};
use contexture_store::{PathEnd, ReadRequest};
use contexture_tools::Policy;
use proptest::prelude::*;

use crate::test_support::{agent, calling, chat, model, saying, tool, transcript};

/// The answers that the conversation holds, on all its branches.
pub(crate) async fn answers(chat: &Conversation) -> u64 {
    let store = chat.engine().store();
    let mut answers = BTreeSet::new();
    for branch in chat.refs().await.unwrap().branches {
        let request = ReadRequest::whole_path(PathEnd::Branch(branch.name));
        let page = store
            .read_path(chat.owner(), chat.id(), request)
            .await
            .unwrap();
        answers.extend(page.nodes.iter().filter_map(|node| node.response));
    }
    answers.len() as u64
}

async fn usage_is_conserved(tasks: Vec<bool>) {
    let chat = chat().await;
    // One that does its task, and one whose model fails when it has called a tool.
    let works = model(std::iter::repeat_with(|| saying("Done.")).take(tasks.len()));
    let call = || calling(&[("c", "nothing", "{}")]);
    let fails = model([call()]);
    let ids: Vec<String> = (0..tasks.len()).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .zip(&tasks)
        .map(|(id, works)| {
            let name = if *works { "works" } else { "fails" };
            (id.as_str(), name, r#"{"task":"Do it."}"#)
        })
        .collect();
    let outer = model([calling(&calls), saying("All told.")]);
    let agent = agent(&outer)
        .with_sub_agent(
            "works",
            SubAgent::new(crate::test_support::agent(&works), "Works."),
        )
        .unwrap()
        .with_sub_agent(
            "fails",
            SubAgent::new(crate::test_support::agent(&fails), "Fails."),
        )
        .unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Go.").await.unwrap();
    assert_eq!(turn.usage.responses, answers(&chat).await, "{tasks:?}");
    assert_eq!(turn.usage.tokens.input, Some(10 * turn.usage.responses));
    let listed = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    let below = listed.iter().filter(|run| run.depth == 1);
    let below: u64 = below
        .filter_map(|run| run.usage)
        .map(|spent| spent.responses)
        .sum();
    assert_eq!(turn.usage.responses, below + 2);
}

/// Says yes to everything.
#[derive(Debug)]
struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(
        &self,
        _: &contexture_layers::ToolRequest,
        _: &str,
        _: &contexture_runs::RunContext,
    ) -> ApprovalDecision {
        ApprovalDecision::Allow
    }
}

const NAMES: [&str; 6] = [
    "free",
    "asked",
    "denied",
    "create_memory",
    "think",
    "functions.denied",
];

async fn what_is_denied_never_runs(called: Vec<&str>) {
    let chat = chat().await;
    chat.set_layers(Layers::new().with_layer(Memory::new()).unwrap());
    let policy = || {
        Policy::default()
            .deny("denied")
            .deny("think")
            .deny("create_memory")
            .ask("asked")
    };
    let mut tools = ToolBox::new(policy());
    let (ran, wrong) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    for (name, count) in [("free", &ran), ("asked", &ran), ("denied", &wrong)] {
        let count = Arc::clone(count);
        tool(&mut tools, name, move || {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(ToolOutput::from("ran"))
        });
    }
    let ids: Vec<String> = (0..called.len()).map(|n| format!("c{n}")).collect();
    let arguments = r#"{"task":"Do it.","key":"k","value":"v"}"#;
    let calls: Vec<_> = ids
        .iter()
        .zip(&called)
        .map(|(id, name)| (id.as_str(), *name, arguments))
        .collect();
    let inner = model([]);
    let outer = model([calling(&calls), saying("Well.")]);
    let agent = agent(&outer)
        .with_tools(tools)
        .unwrap()
        .with_approver(Yes)
        .with_sub_agent(
            "think",
            SubAgent::new(crate::test_support::agent(&inner), "Thinks."),
        )
        .unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Go.").await.unwrap();
    assert_eq!(turn.end, TurnEnd::Completed);
    let may = called
        .iter()
        .filter(|name| ["free", "asked"].contains(name))
        .count();
    assert_eq!(ran.load(Ordering::SeqCst) as usize, may);
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
    assert!(inner.requests().is_empty());
    let notes = chat.layer::<Memory>().unwrap().state().await.unwrap();
    assert!(notes.get("k").is_none());
    let said = transcript(&chat).await;
    let outputs = said.iter().filter(|line| line.starts_with("output"));
    assert_eq!(outputs.count(), called.len());
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn usage_is_the_sum_of_all_answers(tasks in prop::collection::vec(any::<bool>(), 1..5)) {
        block_on(usage_is_conserved(tasks));
    }

    #[test]
    fn a_denied_tool_never_runs(called in prop::collection::vec(prop::sample::select(&NAMES[..]), 1..6)) {
        block_on(what_is_denied_never_runs(called));
    }
}

/// A model during whose first calls somebody else appends.
#[derive(Debug)]
struct Interrupted {
    other: Conversation,
    left: AtomicU32,
}

#[async_trait]
impl Model for Interrupted {
    async fn answer(&self, _: ModelRequest) -> Result<ModelResponse, ModelError> {
        let left = self.left.load(Ordering::SeqCst);
        if left > 0 {
            self.left.store(left - 1, Ordering::SeqCst);
            self.other
                .save([user(format!("{left} more"))])
                .await
                .unwrap();
        }
        Ok(saying(&format!("Heard, {left} left.")))
    }
}

#[tokio::test]
async fn what_others_append_meanwhile_is_kept_and_answered() -> Result<(), RunError> {
    let chat = chat().await;
    let other = chat.engine().conversation("c").open_existing().await?;
    let left = AtomicU32::new(5);
    let model = Arc::new(Interrupted { other, left });
    let agent = Agent::new("tester", model, Target::openai_chat("gpt-4o"));
    let turn = run_turn_with_text(&chat, &agent, "Go.").await?;
    assert_eq!(turn.text, "Heard, 0 left.");
    // Those that came too late stand on branches of their own, and cost what they cost.
    assert_eq!(turn.usage.responses, 6);
    assert_eq!(answers(&chat).await, 6);
    let said = transcript(&chat).await;
    let wanted = ["Go.", "5 more", "4 more", "3 more", "2 more", "1 more"];
    let wanted = wanted.map(|text| format!("user {text}"));
    assert_eq!(said[..6], wanted);
    assert_eq!(said[6..], ["assistant Heard, 0 left."]);
    Ok(())
}
