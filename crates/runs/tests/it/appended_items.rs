//! Layers are asked about all that is appended: outputs of tools and what arrives midway too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_engine::Conversation;
use contexture_ir::{Item, Message, Output, Role};
use contexture_layers::builtin::{Scratchpad, ScratchpadContent};
use contexture_layers::{
    HookContext, Layer, LayerError, LayerId, LayerSpec, Layers, RecallInput, RunEnd,
};
use contexture_runs::{RunEvent, RunEventKind, post_to_inbox, run_turn_with_text};

use crate::test_support::{agent, calling, chat, model, saying, tools, transcript};

fn said(role: Role, text: &str) -> Item {
    Item::Message(Message::text(role, text))
}

/// Leaves out what says "secret", puts "[seen]" behind each output, a note behind the output "3", and counts.
struct Censor;

#[async_trait]
impl Layer for Censor {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("censor").unwrap())
    }

    async fn recall(&self, _: &u32, _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn on_append(
        &self,
        count: &mut u32,
        items: Vec<Item>,
        _: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        *count += 1;
        let mut kept = Vec::new();
        for mut item in items {
            let text = item.text();
            if text.contains("secret") {
                continue;
            }
            if let Item::FunctionCallOutput(output) = &mut item {
                output.output = Output::Text(format!("{text} [seen]"));
                // Whose answer it is, nobody changes.
                output.call_id = "another".to_owned();
            }
            kept.push(item);
            if text == "3" {
                kept.push(said(Role::Developer, "It was three."));
            }
        }
        Ok(kept)
    }

    async fn on_complete(
        &self,
        _: &mut u32,
        _: &RunEnd,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        Ok(())
    }
}

async fn censored() -> Conversation {
    let chat = chat().await;
    let pad = Scratchpad::with_sections([("goal", "The goal")]).unwrap();
    let layers = Layers::new().with_layer(Censor).unwrap().with_layer(pad);
    chat.set_layers(layers.unwrap());
    chat
}

async fn count(chat: &Conversation) -> u32 {
    chat.layer::<Censor>().unwrap().state().await.unwrap()
}

#[tokio::test]
async fn outputs_are_what_layers_let_in_and_each_call_has_one() {
    let chat = censored().await;
    let ran = Arc::new(AtomicU32::new(0));
    let told = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[
            ("c1", "add", r#"{"a":1,"b":2}"#),
            ("c2", "nothing", r#"{}"#),
            ("c3", "scratchpad_update", r#"{"goal":"a secret"}"#),
            ("c4", "add", r#"{"a":2,"b":2}"#),
        ]),
        saying("Done."),
    ]);
    let seen = Arc::clone(&told);
    let agent = agent(&model)
        .with_tools(tools(&ran))
        .unwrap()
        .with_observer(move |event: &RunEvent| {
            if let RunEventKind::ToolFinished { output, .. } = &event.kind {
                let text = Item::FunctionCallOutput(output.clone()).text();
                let let_in = text.ends_with("[seen]") || text.ends_with("withheld");
                seen.fetch_add(u32::from(let_in), Ordering::SeqCst);
            }
        });
    run_turn_with_text(&chat, &agent, "Add.").await.unwrap();
    let outputs = transcript(&chat).await;
    assert_eq!(
        outputs[5..7],
        ["output 3 [seen]", "developer It was three."]
    );
    assert!(outputs[7].starts_with("output unknown tool") && outputs[7].ends_with("[seen]"));
    assert_eq!(outputs[9], "output 4 [seen]");
    assert_eq!(outputs[10], "assistant Done.");
    // Each answers its call, in what the model is sent as well.
    let payload = &model.requests()[1].payload;
    for call in ["c1", "c2", "c3", "c4"] {
        let answered = format!(r#""role":"tool","tool_call_id":"{call}""#);
        assert!(payload.contains(&answered), "{payload}");
    }
    assert!(!payload.contains("another"));
    assert_eq!(told.load(Ordering::SeqCst), 4);
    // What the person said, and four outputs.
    assert_eq!(count(&chat).await, 5);
}

#[tokio::test]
async fn an_output_that_layers_leave_out_is_withheld() {
    let chat = censored().await;
    let update = ("c1", "scratchpad_update", r#"{"goal":"a secret"}"#);
    let look = ("c2", "secret_tool", "{}");
    let model = model([calling(&[update, look]), saying("Done.")]);
    run_turn_with_text(&chat, &agent(&model), "Go.")
        .await
        .unwrap();
    let payload = &model.requests()[1].payload;
    assert!(payload.contains("secret_tool was called, and its output is withheld"));
    // What the function did is done; what it gave said nothing that is left out.
    let pad: ScratchpadContent = chat.layer::<Scratchpad>().unwrap().state().await.unwrap();
    assert!(pad.get("goal").is_some());
}

#[tokio::test]
async fn what_arrives_midway_is_what_layers_let_in() {
    let chat = censored().await;
    for text in ["A secret.", "Hello too."] {
        post_to_inbox(&chat, &said(Role::User, text)).await.unwrap();
    }
    let model = model([saying("Hello.")]);
    run_turn_with_text(&chat, &agent(&model), "Hello.")
        .await
        .unwrap();
    assert_eq!(
        transcript(&chat).await,
        ["user Hello.", "user Hello too.", "assistant Hello."]
    );
    assert_eq!(count(&chat).await, 3);
    // What is left out is no reason to ask again.
    post_to_inbox(&chat, &said(Role::User, "A secret."))
        .await
        .unwrap();
    let model = crate::test_support::model([saying("Hello again.")]);
    let turn = run_turn_with_text(&chat, &agent(&model), "Once more.")
        .await
        .unwrap();
    assert_eq!(turn.text, "Hello again.");
}

#[tokio::test]
async fn a_turn_of_which_layers_leave_nothing_begins_all_the_same() {
    let chat = censored().await;
    let model = model([saying("Well?")]);
    let turn = run_turn_with_text(&chat, &agent(&model), "A secret.").await;
    // There is nothing to answer: the model is not asked about nothing.
    assert!(turn.is_err() || !model.requests()[0].payload.contains("secret"));
    assert!(!transcript(&chat).await.join(" ").contains("secret"));
}
