//! A call offers tools out of a registry.

use contexture_compile::Target;
use contexture_engine::{CompileOptions, CompiledCall, Conversation, RegistryTools};
use contexture_ir::{MessageId, Raw, user};
use contexture_tools::{Choice, LoadedToolkits, Registry, Tool};
use serde_json::{Value, json};

use crate::support::chat;

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(8_000)
}

fn register(registry: &mut Registry, name: &str, text: &str) {
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    registry
        .register(Tool::function(name, text, schema))
        .unwrap();
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    register(&mut registry, "get_weather", "Weather forecast for a city");
    register(&mut registry, "send_mail", "Sends an e-mail");
    register(&mut registry, "read_mail", "Reads an e-mail");
    registry
}

async fn call(chat: &Conversation, registry: &Registry, choice: &Choice) -> CompiledCall {
    let options = CompileOptions {
        tools: Some(RegistryTools {
            registry,
            choice,
            loaded: &LoadedToolkits::default(),
        }),
        ..CompileOptions::default()
    };
    chat.compile_with(&target(), options).await.unwrap()
}

fn names(call: &CompiledCall) -> Vec<String> {
    let payload: Value = serde_json::from_str(&call.payload.to_json()).unwrap();
    let tools = payload["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

async fn answered(chat: &Conversation, call: &CompiledCall) -> contexture_engine::Recorded {
    let answer = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"},
            "finish_reason": "stop"}],
    });
    chat.record(call, &answer.to_string()).await.unwrap()
}

#[tokio::test]
async fn what_was_offered_keeps_its_order_and_rewinds() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let mut registry = registry();
    let task = Choice::by_task("read or send mail", 2);
    let first = call(&chat, &registry, &task).await;
    assert_eq!(names(&first), ["read_mail", "send_mail"]);
    let removed = &first.report.removed_tools;
    assert_eq!(removed.len(), 1);
    assert_eq!(
        (removed[0].tool.as_str(), &removed[0].reasons),
        ("get_weather", &vec!["task".to_owned()])
    );
    let table = first.report.to_string();
    assert!(
        table.contains("1 tool not offered: get_weather (task)"),
        "{table}"
    );
    let recorded = answered(&chat, &first).await;
    assert!(chat.replay(recorded.response).await.unwrap().is_equal());

    // A tool that fits better is new: what was there stays where it was.
    chat.save([user("more")]).await.unwrap();
    register(&mut registry, "a_mail", "read and send mail");
    let second = call(&chat, &registry, &task).await;
    let now = names(&second);
    assert_eq!(now[..2], ["read_mail", "send_mail"]);
    assert_eq!(now.last().unwrap(), "a_mail");
    answered(&chat, &second).await;
    chat.save([user("again")]).await.unwrap();
    let third = call(&chat, &registry, &task).await;
    assert_eq!(names(&third), now);
    assert!(!third.report.epoch.opened);

    // Before the first answer nothing was offered.
    let messages = chat
        .messages(contexture_engine::MessageView::User)
        .await
        .unwrap();
    let id = MessageId::new(messages[0].id.clone()).unwrap();
    chat.rewind(&id).await.unwrap();
    chat.save([user("anew")]).await.unwrap();
    assert_ne!(names(&call(&chat, &registry, &task).await), now);
}

#[tokio::test]
async fn another_choice_decides_anew_and_no_words_of_it_are_kept() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let registry = registry();
    let first = call(&chat, &registry, &Choice::by_task("forecast secretword", 1)).await;
    assert_eq!(names(&first), ["get_weather"]);
    answered(&chat, &first).await;
    let all = call(&chat, &registry, &Choice::all_tools()).await;
    assert_eq!(names(&all), ["get_weather", "read_mail", "send_mail"]);
    assert!(all.report.removed_tools.is_empty());
    let state = contexture_store::StateRequest::all_entries(contexture_store::PathEnd::Branch(
        chat.branch(),
    ));
    let store = chat.engine().store();
    let state = store
        .read_state(chat.owner(), chat.id(), state)
        .await
        .unwrap();
    let values = state.values.values();
    let kept: Vec<String> = values
        .map(|value| String::from_utf8(value.to_vec()).unwrap())
        .collect();
    assert!(kept.iter().any(|value| value.contains("get_weather")));
    assert!(!kept.iter().any(|value| value.contains("secretword")));
}
