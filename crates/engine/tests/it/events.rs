//! An engine is watched.

use contexture_compile::{EpochReason, HistoryPolicy, PreviewPolicy, Previewing, Target};
use contexture_engine::{EngineEvent, EngineEventKind};
use contexture_ir::{FunctionCall, FunctionCallOutput, Message, Output, Role, user};
use serde_json::json;

use crate::support::chat;

#[tokio::test]
async fn calls_are_told_to_whoever_watches() {
    let chat = chat().await;
    let events = chat.engine().subscribe();
    chat.save([user("hello")]).await.unwrap();
    let target = Target::openai_chat("gpt-4o").window(8_000);
    let call = chat.compile(&target).await.unwrap();
    let answer = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop"}],
    });
    let recorded = chat.record(&call, &answer.to_string()).await.unwrap();
    let refused = chat.compile(&target.window(40).reserve(39)).await;
    assert!(refused.is_err());

    let told: Vec<EngineEvent> = std::iter::from_fn(|| events.try_next()).collect();
    assert!(told.iter().all(|event| event.conversation == *chat.id()));
    let told: Vec<EngineEventKind> = told.into_iter().map(|event| event.kind).collect();
    let model = || "gpt-4o".to_owned();
    let start = EngineEventKind::CompileStart { model: model() };
    let done = EngineEventKind::CompileDone {
        model: model(),
        tokens: call.report.totals.tokens,
        epoch: call.report.epoch.number,
        epoch_reason: Some(EpochReason::First),
        cache_read: 0,
        previewed: 0,
    };
    let stored = EngineEventKind::Recorded {
        response: recorded.response,
        usage: None,
    };
    assert_eq!(told, [start.clone(), done, stored, start]);
}

#[tokio::test]
async fn previews_are_told() {
    let chat = chat().await;
    let mut draft = chat.draft();
    draft.push_item(Message::text(Role::User, "read it"));
    draft.push_item(FunctionCall::new("c", "read", "{}"));
    let text = "All of it is said. ".repeat(2_000);
    draft.push_item(FunctionCallOutput::new("c", Output::Text(text)));
    draft.commit().await.unwrap();
    let events = chat.engine().subscribe();
    let history = HistoryPolicy {
        preview: Some(PreviewPolicy {
            when: Previewing::Always,
            ..PreviewPolicy::default()
        }),
        ..HistoryPolicy::default()
    };
    let target = Target::openai_chat("gpt-4o").history(history);
    chat.compile(&target).await.unwrap();
    let told: Vec<EngineEvent> = std::iter::from_fn(|| events.try_next()).collect();
    let done = told.last().map(|event| &event.kind);
    assert!(
        matches!(
            done,
            Some(EngineEventKind::CompileDone { previewed: 1, .. })
        ),
        "{done:?}"
    );
}

#[tokio::test]
async fn watchers_that_panic_or_sleep_fail_no_call() {
    let chat = chat().await;
    chat.save([user("hello")]).await.unwrap();
    let target = Target::openai_chat("gpt-4o").window(8_000);
    let (asleep, panicking) = (chat.engine().subscribe(), chat.engine().subscribe());
    let first = chat.compile(&target).await.unwrap();
    let panicked = std::thread::spawn(move || {
        let event = panicking.try_next().unwrap();
        std::panic::resume_unwind(Box::new(event));
    });
    assert!(panicked.join().is_err());
    // Two events each, so that the queue of the one that sleeps runs over.
    for _ in 0..600 {
        let call = chat.compile(&target).await.unwrap();
        assert_eq!(call.payload.to_json(), first.payload.to_json());
    }
    let kept = std::iter::from_fn(|| asleep.try_next()).count() as u64;
    assert!(asleep.missed_count() > 0);
    assert_eq!(kept + asleep.missed_count(), 1_202);
}
