//! Past calls are compiled again, byte for byte.

use std::collections::BTreeMap;

use contexture_compile::{
    Band, Budget, Content, Contribution, HistoryPolicy, PreviewPolicy, Target,
};
use contexture_engine::{
    CompactOptions, Conversation, Engine, EngineError, RecordLevel, Recorded, Secrets, TestClock,
    TestIds, Unreplayable,
};
use contexture_ir::{
    FunctionCallOutput, FunctionTool, Item, Output, Raw, ResponseId, ToolDefinition, hint, user,
};
use contexture_sessions::{ReadOptions, detect_format, read_sessions};
use contexture_store::{PathEnd, RedactRequest, ResponseStatus};
use contexture_testdata as data;
use serde_json::json;

use crate::support::chat;

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(50_000)
}

fn answer(text: &str) -> String {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
            "finish_reason": "length"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    })
    .to_string()
}

/// The payloads that were sent, by their answers.
type Sent = BTreeMap<ResponseId, String>;

async fn call(chat: &Conversation, target: &Target, said: &str, sent: &mut Sent) -> Recorded {
    let volatile = Contribution::tail("clock", format!("it is {} o'clock", sent.len()));
    let hints = Content::Texts((0..50).map(|n| format!("hint {n}")).collect());
    let hints = Contribution::new("hints", Band::Tail, hints).with_budget(Budget::at_most(60));
    let call = chat.compile_with(target, &[volatile, hints]).await.unwrap();
    let recorded = chat.record(&call, &answer(said)).await.unwrap();
    sent.insert(recorded.response, call.payload.to_json());
    recorded
}

/// Every one of them is compiled again to the same bytes.
async fn expect_all(chat: &Conversation, sent: &Sent) {
    for (response, payload) in sent {
        let replayed = chat.replay(*response).await.unwrap();
        assert!(replayed.is_equal() && !replayed.has_other_compiler_version());
        assert!(replayed.payload.to_json() == *payload, "{response}");
    }
}

/// What a tool said, long enough for the history to be cleared and cut now and then.
fn output(at: usize) -> Item {
    let text = format!("error: line {at} is wrong\n").repeat(60 + at * 7 % 40);
    FunctionCallOutput::new(format!("call-{at}"), Output::Text(text)).into()
}

/// Calls while the conversation grows, its instructions change, it is compacted, rewound and pinned.
async fn live(chat: &Conversation) -> Sent {
    let mut sent = Sent::new();
    let small = target().window(4_000).reserve(500);
    let tool = ToolDefinition::Function(FunctionTool {
        name: "Read".to_owned(),
        parameters: Some(Raw::parse(r#"{"type":"object","z":1, "a":2}"#).unwrap()),
        ..FunctionTool::default()
    });
    let previewed = HistoryPolicy {
        preview: Some(PreviewPolicy::default()),
        ..HistoryPolicy::default()
    };
    let mut pinned = None;
    for at in 0..24 {
        chat.set([hint(format!("rule {}", at / 5).as_str())])
            .unwrap();
        let mut draft = chat.draft();
        draft.push(user(
            format!("question {at}: {}", "and so on ".repeat(30)).as_str(),
        ));
        let call_id = format!("call-{at}");
        draft.push_item(contexture_ir::FunctionCall::new(&call_id, "Read", "{}"));
        draft.push_item(output(at));
        draft.commit().await.unwrap();
        let target = match at % 4 {
            3 => Target::anthropic("claude-sonnet-4-5")
                .window(9_000)
                .tools(vec![tool.clone()]),
            2 => small.clone().history(previewed.clone()),
            _ => small.clone(),
        };
        if at % 4 == 3 {
            let call = chat.compile(&target).await.unwrap();
            let answer = json!({
                "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": format!("answer {at}")}],
                "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 12, "output_tokens": 3},
            });
            let recorded = chat.record(&call, &answer.to_string()).await.unwrap();
            sent.insert(recorded.response, call.payload.to_json());
        } else {
            let recorded = call(chat, &target, &format!("answer {at}"), &mut sent).await;
            pinned.get_or_insert(recorded.nodes[0]);
        }
        match at {
            8 => chat.pin(pinned.unwrap()).await.unwrap(),
            12 => drop(
                chat.compact(&small, &CompactOptions::default())
                    .await
                    .unwrap(),
            ),
            18 => {
                let messages = chat
                    .messages(contexture_engine::MessageView::User)
                    .await
                    .unwrap();
                let id = messages[messages.len() - 4].id.clone();
                chat.rewind(&contexture_ir::MessageId::new(id).unwrap())
                    .await
                    .unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(sent.len(), 24);
    sent
}

#[tokio::test]
async fn every_recorded_call_is_compiled_again_in_memory() {
    let chat = chat().await;
    let sent = live(&chat).await;
    // What the handle says now is nothing to a past call.
    chat.set([hint("other")]).unwrap();
    expect_all(&chat, &sent).await;
    let here = chat
        .response_ids(PathEnd::Branch(chat.branch()))
        .await
        .unwrap();
    assert!(here.len() > 10 && here.len() < sent.len());
    assert!(here.iter().all(|response| sent.contains_key(response)));
}

fn open(path: &std::path::Path) -> Engine {
    let store = contexture_store_sqlite::SqliteStore::open(path).unwrap();
    Engine::new(std::sync::Arc::new(store))
        .with_clock(TestClock::new(1_000))
        .with_ids(TestIds::default())
}

#[tokio::test]
async fn recorded_calls_replay_after_reopening_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.db");
    let chat = open(&path).conversation("c").open().await.unwrap();
    let sent = live(&chat).await;
    drop(chat);
    let chat = open(&path).conversation("c").open_existing().await.unwrap();
    expect_all(&chat, &sent).await;
}

/// Real sessions: each answer of a model as a call of its own, recorded with the message that follows.
#[tokio::test]
async fn every_call_of_stored_sessions_is_compiled_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let (text, name) = (data::tau_bench(), "gpt-4o-airline.json");
    let format = detect_format(&text, name).unwrap().format;
    let options = ReadOptions {
        source_name: name,
        keep_going: true,
    };
    let sessions = read_sessions(format, &text, &options).unwrap();
    let mut all = Vec::new();
    let engine = open(&path);
    for (at, session) in sessions.iter().enumerate().take(20) {
        let name = format!("s{at}");
        let chat = engine.conversation(&name).open().await.unwrap();
        let mut sent = Sent::new();
        for node in session.tree.iter().take(40) {
            match &node.item {
                Item::Message(message) if message.role == contexture_ir::Role::Assistant => {
                    let said = node.item.text();
                    let small = target().window(6_000).reserve(1_000);
                    call(&chat, &small, &said, &mut sent).await;
                }
                item => {
                    let mut draft = chat.draft();
                    draft.push_item(item.clone());
                    draft.commit().await.unwrap();
                }
            }
        }
        all.push((name, sent));
    }
    drop(engine);
    let engine = open(&path);
    let mut calls = 0;
    for (name, sent) in &all {
        let chat = engine.conversation(name).open_existing().await.unwrap();
        expect_all(&chat, sent).await;
        calls += sent.len();
    }
    assert!(calls > 100, "{calls} calls");
}

#[tokio::test]
async fn what_was_redacted_or_not_kept_cannot_be_compiled_again() {
    let chat = chat().await;
    let mut sent = Sent::new();
    chat.save([user("first")]).await.unwrap();
    let first = call(&chat, &target(), "one", &mut sent).await;
    chat.save([user("a secret")]).await.unwrap();
    let second = call(&chat, &target(), "two", &mut sent).await;
    let secret = chat.replay(second.response).await.unwrap().base.unwrap();
    let request = RedactRequest {
        nodes: vec![secret],
        ..RedactRequest::default()
    };
    let store = chat.engine().store();
    store
        .redact_content(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    assert!(chat.replay(first.response).await.unwrap().is_equal());
    let refused = chat.replay(second.response).await;
    assert!(matches!(
        refused,
        Err(EngineError::Unreplayable {
            reason: Unreplayable::Redacted,
            ..
        })
    ));
    // After it: what was sent is a tombstone, and is sent again.
    chat.save([user("third")]).await.unwrap();
    let third = call(&chat, &target(), "three", &mut sent).await;
    assert!(chat.replay(third.response).await.unwrap().is_equal());

    let refused = chat.replay(ResponseId::derive("no", &[])).await;
    assert!(matches!(refused, Err(EngineError::Store(_))));

    // What goes with the answer, besides.
    let stored = store.load_response(chat.owner(), chat.id(), second.response);
    let stored = stored.await.unwrap();
    assert_eq!(stored.status, ResponseStatus::Incomplete);
    assert_eq!(stored.model.as_deref(), Some("gpt-4o"));
    assert!(stored.usage.unwrap().contains("12"));
}

#[tokio::test]
async fn how_much_is_kept_is_the_engines_to_say() {
    for level in [
        RecordLevel::Hashes,
        RecordLevel::Inputs,
        RecordLevel::Payload,
    ] {
        let engine = crate::support::engine().with_record_level(level);
        let chat = engine.conversation("c").open().await.unwrap();
        chat.save([user("hello")]).await.unwrap();
        let mut sent = Sent::new();
        let recorded = call(&chat, &target(), "hi", &mut sent).await;
        let store = engine.store();
        let stored = store.load_response(chat.owner(), chat.id(), recorded.response);
        let bytes = stored
            .await
            .unwrap()
            .inputs
            .recorded_bytes()
            .unwrap()
            .to_vec();
        let kept = String::from_utf8(bytes).unwrap();
        assert_eq!(kept.contains("o'clock"), level != RecordLevel::Hashes);
        assert_eq!(kept.contains("hello"), level == RecordLevel::Payload);
        let replayed = chat.replay(recorded.response).await;
        match level {
            RecordLevel::Hashes => assert!(matches!(
                replayed,
                Err(EngineError::Unreplayable {
                    reason: Unreplayable::NotRecorded,
                    ..
                })
            )),
            _ => assert!(replayed.unwrap().is_equal()),
        }
    }
}

#[tokio::test]
async fn secrets_are_not_kept_with_an_answer() {
    let engine = crate::support::engine().with_secrets(Secrets::common());
    let chat = engine.conversation("c").open().await.unwrap();
    chat.save([user("hello")]).await.unwrap();
    let key = format!("sk-ant-api03-{}", "a1B2".repeat(20));
    let told = Contribution::system("told", format!("the key is {key}"));
    let call = chat.compile_with(&target(), &[told]).await.unwrap();
    let recorded = chat.record(&call, &answer("hi")).await.unwrap();
    let stored = engine.store();
    let stored = stored.load_response(chat.owner(), chat.id(), recorded.response);
    let kept = stored
        .await
        .unwrap()
        .inputs
        .recorded_bytes()
        .unwrap()
        .to_vec();
    assert!(!String::from_utf8(kept).unwrap().contains(&key));
}
