//! States of layers that somebody else changes while a run goes on: no hook is lost, none counts twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use async_trait::async_trait;
use contexture_compile::{Contribution, Target};
use contexture_engine::{Conversation, Engine, TestClock, TestIds};
use contexture_ir::Item;
use contexture_layers::{
    AnswerVerdict, ChildEnd, ChildResult, HookContext, Layer, LayerError, LayerId, LayerSpec,
    Layers, ObservedItems, RecallInput, RunEnd, StateScope, ToolGate, ToolRequest,
};
use contexture_runs::{Agent, SubAgent, run_turn_with_text};

use crate::test_support::{agent, calling, model, saying, tools};
use crate::usage::{Counts, Tally, count};

/// After the first of each hook, at each depth, it changes the state that [`Tally`] keeps, from another conversation:
/// what the run has read is old then.
struct Rival {
    other: Conversation,
    done: Arc<Mutex<BTreeSet<String>>>,
}

impl Rival {
    async fn strike(&self, hook: &str, context: &HookContext) {
        let new = self
            .done
            .lock()
            .unwrap()
            .insert(format!("{hook} {}", context.depth));
        if new {
            let tally = self.other.layer::<Tally>().unwrap();
            let change = |counts: &mut Counts, _: &HookContext| {
                count(counts, "rival", 1);
                Ok(())
            };
            tally.update(change).await.unwrap();
        }
    }
}

#[async_trait]
impl Layer for Rival {
    type State = u8;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("rival").unwrap())
    }

    async fn recall(&self, _: &u8, _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn on_append(
        &self,
        _: &mut u8,
        items: Vec<Item>,
        context: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        self.strike("on_append", context).await;
        Ok(items)
    }

    async fn after_model(
        &self,
        _: &mut u8,
        _: &[Item],
        context: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        self.strike("after_model", context).await;
        Ok(AnswerVerdict::Pass)
    }

    async fn before_tool(
        &self,
        _: &mut u8,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        self.strike(&format!("before_tool {}", call.tool), context)
            .await;
        Ok(ToolGate::Allow)
    }

    async fn observe(
        &self,
        _: &mut u8,
        _: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        self.strike("observe", context).await;
        Ok(())
    }

    async fn on_return(
        &self,
        _: &mut u8,
        _: &u8,
        _: &ChildEnd,
        context: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        self.strike("on_return", context).await;
        Ok(ChildResult::Keep)
    }

    async fn on_complete(
        &self,
        _: &mut u8,
        _: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        self.strike("on_complete", context).await;
        Ok(())
    }
}

fn adder() -> Agent {
    let model = model([
        calling(&[("a", "add", r#"{"a":1,"b":2}"#), ("b", "tally_one", "{}")]),
        saying("Three."),
    ]);
    Agent::new("adder", model, Target::openai_chat("gpt-4o"))
        .with_tools(tools(&Arc::new(AtomicU32::new(0))))
        .unwrap()
}

/// A turn with a tool, a function and a child; what was counted, and how often somebody else was faster.
async fn turn(scope: StateScope, with_rival: bool) -> (Counts, Vec<String>, usize) {
    let engine = Engine::in_memory()
        .with_clock(TestClock::new(1_000))
        .with_ids(TestIds::default());
    let open = async |id: &str| {
        let chat = engine.conversation(id).resource("r").open().await.unwrap();
        let tally = Tally { scope, gates: true };
        (chat.clone(), Layers::new().with_layer(tally).unwrap())
    };
    let (chat, layers) = open("c").await;
    let (other, same) = open("other").await;
    other.set_layers(same);
    let done = Arc::new(Mutex::new(BTreeSet::new()));
    let rival = Rival {
        other,
        done: Arc::clone(&done),
    };
    chat.set_layers(match with_rival {
        true => layers.with_layer(rival).unwrap(),
        false => layers,
    });
    let model = model([
        calling(&[
            ("a", "add", r#"{"a":1,"b":2}"#),
            ("b", "tally_one", "{}"),
            ("c", "adds", r#"{"task":"Add."}"#),
        ]),
        calling(&[("d", "tally_one", "{}")]),
        saying("Done."),
    ]);
    let agent = agent(&model)
        .with_tools(tools(&Arc::new(AtomicU32::new(0))))
        .unwrap()
        .with_sub_agent("adds", SubAgent::new(adder(), "Adds."))
        .unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Add.").await.unwrap();
    assert_eq!(turn.text, "Done.");
    let counts = chat.layer::<Tally>().unwrap().state().await.unwrap();
    let said = crate::test_support::transcript(&chat).await;
    let struck = done.lock().unwrap().len();
    (counts, said, struck)
}

#[tokio::test]
async fn whoever_is_faster_no_hook_is_lost_and_none_counts_twice() {
    for scope in [StateScope::Resource, StateScope::Global] {
        let (alone, said_alone, none) = turn(scope, false).await;
        assert_eq!(none, 0);
        assert_eq!(
            (alone["on_complete"], alone["on_return"], alone["call"]),
            (2, 1, 3),
            "{alone:?}"
        );
        let (mut counts, said, struck) = turn(scope, true).await;
        assert!(struck >= 12, "{struck}");
        assert_eq!(counts.remove("rival"), Some(struck as u64));
        assert_eq!(counts, alone, "{scope:?}");
        // What the function gave is what it came to.
        assert_eq!(said, said_alone);
    }
}
