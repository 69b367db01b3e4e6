//! The built-in layers in conversations that are stored: what calls tell of them, what rewinds, what outlives a process.

use std::sync::Arc;

use contexture_compile::Target;
use contexture_compile::compaction::NEW_CONTEXT;
use contexture_engine::{Conversation, Engine, EngineEventKind, NoticePolicy, TestClock, TestIds};
use contexture_ir::{Raw, hint, user};
use contexture_layers::builtin::memory::Memory;
use contexture_layers::builtin::{
    InstructionText, Instructions, Observations, PlanLayer, Scratchpad, Skill, Skills,
};
use contexture_layers::{LayerId, Layers, StateScope};
use contexture_models::{ScriptedModel, text_response};
use contexture_store::{KeyScope, ListEntries, MemoryStore, Store};
use contexture_wire::Format;

use crate::support::engine;

fn target() -> Target {
    Target::openai_chat("gpt-4o")
}

fn skills() -> Skills {
    let skill = Skill::new("greet", "How to greet.", "Bow before you greet.");
    Skills::new([skill.unwrap()]).unwrap()
}

fn named(id: &str) -> LayerId {
    LayerId::new(id).unwrap()
}

async fn call(chat: &Conversation, function: &str, arguments: &str) {
    let arguments = Raw::parse(arguments).unwrap();
    chat.call_function(function, &arguments).await.unwrap();
}

async fn payload(chat: &Conversation) -> String {
    chat.compile(&target()).await.unwrap().payload.to_json()
}

async fn answer(chat: &Conversation) {
    let call = chat.compile(&target()).await.unwrap();
    let body = text_response(Format::OpenAiChat, "Well.");
    chat.record(&call, &body).await.unwrap();
}

/// A notice before a compaction names tools that there are.
#[test]
fn built_in_layers_offer_the_tools_of_a_notice() {
    let layers = Layers::new().with_layer(Memory::new()).unwrap();
    let layers = layers
        .with_layer(Scratchpad::with_sections([("goal", "The goal")]).unwrap())
        .unwrap();
    for tool in NoticePolicy::default().tools {
        let is_offered = tool == NEW_CONTEXT || layers.find_function(&tool).is_some();
        assert!(is_offered, "{tool}");
    }
}

#[tokio::test]
async fn a_call_says_which_notes_it_shows_and_an_event_which_are_gone() {
    let layers = Layers::new().with_layer(Memory::new()).unwrap();
    let engine = engine().with_layers(layers.with_layer(skills()).unwrap());
    let events = engine.subscribe();
    let chat = engine.conversation("c").open().await.unwrap();
    chat.save([user("Hello.")]).await.unwrap();
    call(
        &chat,
        "create_memory",
        r#"{"key":"tone","value":"dry","ttl":1}"#,
    )
    .await;
    call(&chat, "skills_activate", r#"{"name":"greet"}"#).await;

    let compiled = chat.compile(&target()).await.unwrap();
    let told: Vec<_> = compiled
        .layer_events
        .iter()
        .map(|told| told.name.as_str())
        .collect();
    assert_eq!(told, ["memory:injected"]);
    assert_eq!(compiled.layer_events[0].data.get(), r#"{"keys":["tone"]}"#);
    let became: Vec<_> = compiled
        .outcomes
        .iter()
        .map(|one| one.layer.as_str())
        .collect();
    assert_eq!(became, ["memory", "skills"]);
    assert!(compiled.outcomes.iter().all(|one| one.status.is_ok()));
    assert!(compiled.payload.to_json().contains("Bow before you greet."));
    let active = chat
        .layer::<Skills>()
        .unwrap()
        .state()
        .await
        .unwrap()
        .active;
    assert_eq!(active[0].name, "greet");

    answer(&chat).await;
    let names = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event.kind {
        EngineEventKind::Layer(event) => Some(event.name),
        _ => None,
    });
    let gone = names.filter(|name| name == "memory:expired").count();
    assert_eq!(gone, 1);
    let after = chat.compile(&target()).await.unwrap();
    assert!(after.layer_events.is_empty(), "{:?}", after.layer_events);
}

#[tokio::test]
async fn a_checkpoint_brings_back_notes_plan_pad_and_skill() {
    let layers = Layers::new()
        .with_layer(Memory::new().with_scope(StateScope::Path))
        .and_then(|layers| layers.with_layer(PlanLayer::new()))
        .and_then(|layers| {
            layers.with_layer(Scratchpad::with_sections([("goal", "The goal")]).unwrap())
        })
        .and_then(|layers| layers.with_layer(skills()));
    let engine = engine().with_layers(layers.unwrap());
    let chat = engine.conversation("c").open().await.unwrap();
    chat.set([hint("Be brief.")]).unwrap();
    chat.save([user("Hello.")]).await.unwrap();
    call(&chat, "create_memory", r#"{"key":"tone","value":"dry"}"#).await;
    call(&chat, "update_plan", r#"{"tasks":[{"text":"read"}]}"#).await;
    call(&chat, "scratchpad_update", r#"{"goal":"ship it"}"#).await;
    call(&chat, "skills_activate", r#"{"name":"greet"}"#).await;
    let then = payload(&chat).await;
    chat.checkpoint("kept").await.unwrap();

    call(&chat, "delete_memory", r#"{"key":"tone"}"#).await;
    call(&chat, "update_plan", r#"{"tasks":[]}"#).await;
    call(&chat, "scratchpad_update", r#"{"goal":"wait"}"#).await;
    call(&chat, "skills_deactivate", r#"{"name":"greet"}"#).await;
    chat.save([user("And now?")]).await.unwrap();
    let changed = payload(&chat).await;
    assert!(
        !changed.contains("dry") && !changed.contains("Bow"),
        "{changed}"
    );

    chat.restore("kept").await.unwrap();
    assert_eq!(payload(&chat).await, then);
    for kept in ["dry", "read", "ship it", "Bow before you greet."] {
        assert!(then.contains(kept), "{kept}");
    }
}

#[tokio::test]
async fn set_layers_drops_removed_layers_and_starts_added_ones() {
    let chat = engine().conversation("c").open().await.unwrap();
    let secret = || Instructions::new("The word is swordfish.");
    chat.set_layers(Layers::new().with_layer(secret()).unwrap());
    chat.save([user("Hello.")]).await.unwrap();
    answer(&chat).await;
    assert!(payload(&chat).await.contains("swordfish"));
    chat.set_layers(Layers::new());
    assert!(!payload(&chat).await.contains("swordfish"));

    let words = |_| async { Ok(InstructionText::from("Loaded.")) };
    let loaded = Instructions::from_loader(words).with_spec(|spec| spec.id = named("loaded"));
    chat.set_layers(Layers::new().with_layer(loaded).unwrap());
    assert!(payload(&chat).await.contains("Loaded."));
}

#[tokio::test]
async fn looking_at_what_would_be_sent_stores_nothing() {
    let layers = Layers::new().with_layer(Memory::new()).unwrap();
    let engine = engine().with_layers(layers.with_layer(PlanLayer::new()).unwrap());
    let chat = engine.conversation("c").open().await.unwrap();
    chat.save([user("Hello.")]).await.unwrap();
    call(&chat, "create_memory", r#"{"key":"a","value":"b","ttl":1}"#).await;
    let before = chat.info().await.unwrap();
    let first = payload(&chat).await;
    assert_eq!(payload(&chat).await, first);
    assert_eq!(chat.info().await.unwrap(), before);
}

#[tokio::test]
async fn notes_outlive_a_process_with_their_time_and_are_one_value() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let open = async || {
        let layers = Layers::new().with_layer(Memory::new()).unwrap();
        let engine = Engine::new(Arc::clone(&store)).with_clock(TestClock::new(1_000));
        let engine = engine.with_ids(TestIds::default()).with_layers(layers);
        let chat = engine.conversation("c").resource("ada");
        chat.open().await.unwrap()
    };
    let chat = open().await;
    for key in ["a", "b", "c"] {
        let note = format!(r#"{{"key":"{key}","value":"kept {key}","ttl":2}}"#);
        call(&chat, "create_memory", &note).await;
    }
    chat.save([user("Hello.")]).await.unwrap();
    answer(&chat).await;
    drop(chat);

    let chat = open().await;
    assert!(payload(&chat).await.contains("kept b"));
    let scope = KeyScope::Resource("ada".to_owned());
    let list = ListEntries::in_scope(scope, "");
    let listed = store
        .list_entries(chat.owner(), list)
        .await
        .unwrap()
        .entries;
    assert_eq!(listed.len(), 1, "{listed:?}");
    answer(&chat).await;
    assert!(!payload(&chat).await.contains("kept b"));
}

#[tokio::test]
async fn alternating_instructions_keep_each_prompt_prefix() {
    let chat = engine().conversation("c").open().await.unwrap();
    let messages = |payload: &str| -> Vec<serde_json::Value> {
        let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
        payload["messages"].as_array().unwrap().clone()
    };
    let mut last = [Vec::new(), Vec::new()];
    for turn in 0..6 {
        let which = turn % 2;
        let (name, words) = [("writer", "You write."), ("judge", "You judge.")][which];
        let words = Instructions::new(words).with_spec(|spec| spec.id = named(name));
        chat.set_layers(Layers::new().with_layer(words).unwrap());
        chat.save([user(format!("turn {turn}").as_str())])
            .await
            .unwrap();
        let now = messages(&payload(&chat).await);
        assert!(now.starts_with(&last[which]), "{turn}: {now:?}");
        assert_ne!(now.first(), last[1 - which].first());
        assert!(now.len() > last[which].len());
        last[which] = now;
        answer(&chat).await;
    }
}

#[tokio::test]
async fn layers_ask_the_model_that_the_engine_has_for_them() {
    let model = ScriptedModel::with_texts(Format::OpenAiChat, ["- Grace owns the parcel"]);
    let model = Arc::new(model);
    let layers = Layers::new().with_layer(Observations::new().with_model(100));
    let long = format!("The parcel is of Grace. {}", "And so on. ".repeat(60));
    let engine = engine().with_layers(layers.unwrap());
    let asking = engine.clone().with_layer_model(model.clone(), target());
    for (engine, noted) in [(engine, false), (asking, true)] {
        let chat = engine.conversation(if noted { "asking" } else { "alone" });
        let chat = chat.open().await.unwrap();
        chat.save([user(long.as_str())]).await.unwrap();
        let said = payload(&chat).await;
        assert_eq!(said.contains("Grace owns the parcel"), noted, "{said}");
    }
    assert_eq!(model.requests().len(), 1);
    assert!(
        model.requests()[0]
            .payload
            .contains("The parcel is of Grace.")
    );
}
