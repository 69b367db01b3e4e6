//! What a handle says beside its conversation.

use contexture_compile::{Contribution, Guardrails, Placement, Target};
use contexture_engine::{Conversation, EngineError};
use contexture_ir::user;
use serde_json::{Value, json};

use crate::support::chat;

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(8_000)
}

async fn messages(chat: &Conversation, target: &Target) -> Vec<Value> {
    let call = chat.compile(target).await.unwrap();
    let payload: Value = serde_json::from_str(&call.payload.to_json()).unwrap();
    payload["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn asides_are_said_with_every_call_until_they_are_set_anew() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let state = Contribution::state(&json!({"open": 2}), Placement::Tail).unwrap();
    let first = chat.compile(&target()).await.unwrap();
    chat.update_call_context(|aside| {
        aside.set_context("file", "main.rs");
        aside.set_state(Some(state));
        aside.set_budget(Some(Contribution::remaining_budget(&first.report, None)));
    });
    let said = messages(&chat, &target()).await;
    let tail = Value::from(said.get(1..).unwrap()).to_string();
    let places = ["<file>main.rs", "<open>2", "The previous request took"];
    let places = places.map(|text| tail.find(text).unwrap());
    assert!(places.is_sorted(), "{tail}");
    assert_eq!(said[0]["content"], "hello");

    let again = chat.clone();
    again.update_call_context(|aside| {
        aside.set_context("file", "");
        aside.set_budget(None);
    });
    let said = Value::from(messages(&chat, &target()).await).to_string();
    assert!(
        !said.contains("main.rs") && said.contains("<open>2"),
        "{said}"
    );
    // It is the handle's: the stored conversation does not say it.
    let other = chat.engine().conversation("c").open().await.unwrap();
    assert_eq!(messages(&other, &target()).await.len(), 1);
}

#[tokio::test]
async fn guardrails_follow_what_the_model_can_do() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let rails = Guardrails {
        prefill: Some("Sure,".to_owned()),
        ..Guardrails::default()
    };
    chat.update_call_context(|aside| aside.set_guardrails(rails));
    let continued = messages(&chat, &Target::anthropic("claude-sonnet-4-5").window(8_000)).await;
    assert_eq!(continued.last().unwrap()["role"], "assistant");
    let told = messages(&chat, &target()).await;
    assert_ne!(told.last().unwrap()["role"], "assistant");
    assert!(
        Value::from(told)
            .to_string()
            .contains("Begin the answer with")
    );

    let rails = Guardrails {
        output_tag: Some("a tag".to_owned()),
        ..Guardrails::default()
    };
    chat.update_call_context(|aside| aside.set_guardrails(rails));
    let error = chat.compile(&target()).await.unwrap_err();
    assert!(matches!(error, EngineError::Guardrails(_)));
    assert_eq!(
        (error.kind(), error.is_retryable()),
        ("bad_guardrails", false)
    );
}

#[tokio::test]
async fn a_call_with_asides_is_compiled_again() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    chat.update_call_context(|aside| aside.set_context("time", "noon"));
    let call = chat.compile(&target()).await.unwrap();
    let answer = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop"}],
    });
    let recorded = chat.record(&call, &answer.to_string()).await.unwrap();
    chat.update_call_context(|aside| aside.set_context("time", "midnight"));
    assert!(chat.replay(recorded.response).await.unwrap().is_equal());
}
