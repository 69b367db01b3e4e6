//! Standing rules of stored conversations: shown, dropped, restored, rewound, and gone with their messages.

use contexture_compile::{EpochReason, Target};
use contexture_engine::{Conversation, EngineError};
use contexture_ir::{MessageId, NodeId, assistant_text, user};
use contexture_store::RedactRequest;

use crate::support::chat;

const RULE: &str = "Never push to main without asking me.";

/// A conversation whose second message states a rule, and many long ones behind it.
async fn long() -> (Conversation, NodeId) {
    let chat = chat().await;
    chat.save([user("Hello"), assistant_text("Hi.")])
        .await
        .unwrap();
    let saved = chat
        .save([user(format!("Fix it. {RULE}")), assistant_text("Fixed.")])
        .await
        .unwrap();
    for at in 0..20 {
        let text = format!("message {at}: {}", "words and more words ".repeat(20));
        chat.save([user(text.as_str()), assistant_text("yes")])
            .await
            .unwrap();
    }
    (chat, saved.nodes[0])
}

fn small() -> Target {
    Target::openai_chat("gpt-4o").window(1_600).reserve(200)
}

/// How often the rule is said, and the report's reason of the epoch if it opened one.
async fn compiled(chat: &Conversation) -> (usize, Option<EpochReason>) {
    let call = chat.compile(&small()).await.unwrap();
    let (opened, reason) = (call.report.epoch.opened, call.report.epoch.reason);
    let payload = call.payload.to_json().to_string();
    let answer = r#"{"id":"a","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Recorded."},"finish_reason":"stop"}]}"#;
    chat.record(&call, answer).await.unwrap();
    chat.save([user("go on")]).await.unwrap();
    (payload.matches(RULE).count(), opened.then_some(reason))
}

#[tokio::test]
async fn rules_are_shown_dropped_and_restored() {
    let (chat, node) = long().await;
    let (times, _) = compiled(&chat).await;
    assert_eq!(times, 1);
    let rules = chat.rules().await.unwrap();
    assert_eq!(
        (rules.len(), rules[0].node, rules[0].turn),
        (1, Some(node), 2)
    );
    let id = rules[0].id.clone();
    assert!(chat.drop_rule(id.as_str()).await.unwrap());
    assert!(
        !chat.drop_rule(id.as_str()).await.unwrap(),
        "it is dropped already"
    );
    let (times, reason) = compiled(&chat).await;
    assert_eq!((times, reason), (0, Some(EpochReason::RulesChanged)));
    assert_eq!(compiled(&chat).await.1, None);
    assert!(chat.restore_rule(id.as_str()).await.unwrap());
    assert!(!chat.restore_rule(id.as_str()).await.unwrap());
    let (times, reason) = compiled(&chat).await;
    assert_eq!((times, reason), (1, Some(EpochReason::RulesChanged)));
    let unknown = chat.drop_rule("of nobody").await.unwrap_err();
    assert!(
        matches!(unknown, EngineError::UnknownRule { .. }),
        "{unknown}"
    );
}

#[tokio::test]
async fn a_drop_is_rewound_with_its_branch() {
    let (chat, _) = long().await;
    let id = chat.rules().await.unwrap()[0].id.clone();
    let messages = chat
        .messages(contexture_engine::MessageView::User)
        .await
        .unwrap();
    let last = MessageId::new(messages.last().unwrap().id.clone()).unwrap();
    chat.drop_rule(id.as_str()).await.unwrap();
    chat.rewind(&last).await.unwrap();
    assert!(!chat.rules().await.unwrap()[0].is_dropped);
    let first = MessageId::new(messages[0].id.clone()).unwrap();
    chat.rewind(&first).await.unwrap();
    assert!(
        chat.rules().await.unwrap().is_empty(),
        "its message is on no path here"
    );
}

#[tokio::test]
async fn a_redacted_message_leaves_no_trace_in_rules() {
    let (chat, node) = long().await;
    assert_eq!(compiled(&chat).await.0, 1);
    let request = RedactRequest {
        nodes: vec![node],
        values: Vec::new(),
        blobs: Vec::new(),
        at_ms: 2_000,
    };
    let store = chat.engine().store();
    store
        .redact_content(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    assert!(chat.rules().await.unwrap().is_empty());
    let call = chat.compile(&small()).await.unwrap();
    let payload = call.payload.to_json();
    assert!(!payload.contains("push to main") && !payload.contains("standing_rules"));
}
