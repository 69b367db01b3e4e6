//! Compiling a conversation and recording the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_compile::{Cancel, Target};
use contexture_engine::{CompileOptions, Engine, MessageView, PrepareOptions};
use contexture_ir::{FunctionTool, Raw, ToolDefinition, hint, user};
use contexture_store::MemoryStore;
use contexture_store_testkit::{Faulty, Method};
use serde_json::{Value, json};

use crate::support::{branches, chat, texts};

fn target() -> Target {
    Target::anthropic("claude-sonnet-4-5").window(50_000)
}

fn answer(text: &str) -> String {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 3},
    })
    .to_string()
}

#[tokio::test]
async fn an_answer_is_stored_with_the_plan_of_its_call() {
    let chat = chat().await;
    chat.set([hint("Be brief.")]).unwrap();
    chat.save([user("hello")]).await.unwrap();
    let call = chat.compile(&target()).await.unwrap();
    let payload: Value = serde_json::from_str(&call.payload.to_json()).unwrap();
    assert_eq!(payload["system"][0]["text"], "<hint>Be brief.</hint>");
    assert_eq!(payload["messages"][0]["content"][0]["text"], "hello");

    let recorded = chat.record(&call, &answer("hi")).await.unwrap();
    assert_eq!(
        (recorded.on_sibling_branch, recorded.nodes.len()),
        (false, 1)
    );
    assert_eq!(recorded.usage.unwrap().input_tokens, Some(12));
    assert_eq!(texts(&chat).await, ["hello", "hi"]);

    // Twice is once.
    let again = chat.record(&call, &answer("hi")).await.unwrap();
    assert_eq!(again.nodes, recorded.nodes);
    assert_eq!(texts(&chat).await, ["hello", "hi"]);

    // The next call goes on in the same epoch: the plan came back with the head.
    chat.save([user("more")]).await.unwrap();
    let next = chat.compile(&target()).await.unwrap();
    assert_eq!(next.report.epoch.number, call.report.epoch.number);
}

#[tokio::test]
async fn calls_are_stored_under_the_names_that_were_given() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let tool = FunctionTool {
        name: "files.read".to_owned(),
        ..FunctionTool::default()
    };
    let target = target().tools(vec![ToolDefinition::Function(tool)]);
    let call = chat.compile(&target).await.unwrap();
    let payload: Value = serde_json::from_str(&call.payload.to_json()).unwrap();
    let sent = payload["tools"][0]["name"].as_str().unwrap();
    assert_ne!(sent, "files.read");

    let mut answer: Value = serde_json::from_str(&answer("")).unwrap();
    answer["content"] = json!([{"type": "tool_use", "id": "toolu_1", "name": sent, "input": {}}]);
    chat.record(&call, &answer.to_string()).await.unwrap();
    let stored = chat.messages(MessageView::User).await.unwrap();
    let stored = serde_json::to_string(&stored).unwrap();
    assert!(
        stored.contains("files.read") && !stored.contains(sent),
        "{stored}"
    );

    // The next request says the same name again.
    let next = chat.compile(&target).await.unwrap();
    let payload: Value = serde_json::from_str(&next.payload.to_json()).unwrap();
    assert_eq!(payload["messages"][1]["content"][0]["name"], sent);
}

#[tokio::test]
async fn a_late_answer_is_kept_on_a_branch_of_its_own() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let call = chat.compile(&target()).await.unwrap();
    chat.save([user("wait")]).await.unwrap();
    let recorded = chat.record(&call, &answer("hi")).await.unwrap();
    assert!(recorded.on_sibling_branch);
    assert_eq!(recorded.branch.as_str(), "main-v2");
    assert_eq!(texts(&chat).await, ["hello", "wait"]);
    assert_eq!(branches(&chat).await, ["main 2 *", "main-v2 2"]);
}

#[tokio::test]
async fn what_is_no_answer_is_refused() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let call = chat.compile(&target()).await.unwrap();
    let request = call.payload.to_json();
    assert_eq!(
        chat.record(&call, &request).await.unwrap_err().kind(),
        "not_a_response"
    );
    assert_eq!(
        chat.record(&call, "{").await.unwrap_err().kind(),
        "bad_document"
    );
    assert_eq!(texts(&chat).await, ["hello"]);
}

#[tokio::test]
async fn what_cannot_be_compiled_is_refused() {
    let chat = chat().await;
    assert_eq!(
        chat.compile(&target()).await.unwrap_err().kind(),
        "nothing_to_say"
    );
    chat.save([user("word ".repeat(9_000).as_str())])
        .await
        .unwrap();
    let small = target().window(4_000);
    assert_eq!(
        chat.compile(&small).await.unwrap_err().kind(),
        "does_not_fit"
    );
    let unknown = Target::anthropic("claude-sonet-4-5");
    let error = chat.compile(&unknown).await.unwrap_err();
    assert!(error.to_string().contains("claude-sonnet-4-5"), "{error}");
}

#[tokio::test]
async fn a_call_asks_the_store_for_what_is_new() {
    let store = Arc::new(Faulty::never(Arc::new(MemoryStore::default())));
    let engine = Engine::new(store.clone());
    let chat = engine.conversation("c").open().await.unwrap();
    chat.save([user("hello")]).await.unwrap();
    let call = chat.compile(&target()).await.unwrap();
    let asked_since = |before: &BTreeMap<Method, u64>| -> Vec<(Method, u64)> {
        let counts = store.call_counts().into_iter();
        let since =
            counts.map(|(method, calls)| (method, calls - before.get(&method).unwrap_or(&0)));
        since.filter(|(_, calls)| *calls > 0).collect()
    };
    let before = store.call_counts();
    chat.compile(&target()).await.unwrap();
    let new = [
        (Method::ReadPath, 1),
        (Method::ReadState, 1),
        (Method::ListEvents, 1),
    ];
    assert_eq!(asked_since(&before), new);
    // A call that may compact looks at the path once more, and at what was reported for the last answer.
    chat.record(&call, &answer("Hi.")).await.unwrap();
    chat.prepare(&target(), &PrepareOptions::default())
        .await
        .unwrap();
    let before = store.call_counts();
    chat.prepare(&target(), &PrepareOptions::default())
        .await
        .unwrap();
    let new = [
        (Method::ReadPath, 2),
        (Method::ReadState, 1),
        (Method::LoadResponse, 1),
        (Method::ListEvents, 2),
    ];
    assert_eq!(asked_since(&before), new);
}

#[tokio::test]
async fn a_call_is_called_off_from_another_thread() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let cancel = Cancel::new();
    let options = CompileOptions {
        cancel: Some(&cancel),
        ..CompileOptions::default()
    };
    let call = chat.compile_with(&target(), options).await.unwrap();
    let elsewhere = cancel.clone();
    std::thread::spawn(move || elsewhere.cancel())
        .join()
        .unwrap();
    let error = chat.compile_with(&target(), options).await.unwrap_err();
    assert_eq!(error.kind(), "cancelled");
    let again = chat.compile(&target()).await.unwrap();
    assert_eq!(again.payload.to_json(), call.payload.to_json());
}

#[tokio::test]
async fn calls_of_a_conversation_go_to_one_cache() {
    let engine = crate::support::engine();
    let key = async |owner: &str, name: &str, target: Target| {
        let chat = engine.conversation(name).owner(owner);
        let chat = chat.open().await.unwrap();
        chat.save([user("hello")]).await.unwrap();
        let call = chat.compile(&target.window(8_000)).await.unwrap();
        let payload: Value = serde_json::from_str(&call.payload.to_json()).unwrap();
        payload
            .get("prompt_cache_key")
            .map(|key| key.as_str().unwrap().to_owned())
    };
    let chat = || Target::openai_chat("gpt-4o");
    let first = key("ada", "a", chat()).await.unwrap();
    assert_eq!(first.len(), 32);
    assert!(!first.contains("ada"));
    let again = key("ada", "a", Target::openai_responses("gpt-4.1")).await;
    assert_eq!(again.as_ref(), Some(&first));
    assert_ne!(key("ada", "b", chat()).await.unwrap(), first);
    assert_ne!(key("bob", "a", chat()).await.unwrap(), first);
    let own = chat().param("prompt_cache_key", Raw::parse("\"own\"").unwrap());
    assert_eq!(key("ada", "a", own).await.unwrap(), "own");
    for other in [
        Target::anthropic("claude-sonnet-4-5"),
        Target::gemini("gemini-2.5-pro"),
        Target::openai_chat("claude-sonnet-4-5"),
        Target::openai_chat("deepseek-chat"),
    ] {
        assert_eq!(key("ada", "a", other).await, None);
    }
}
