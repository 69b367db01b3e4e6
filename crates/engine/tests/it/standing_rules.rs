//! Standing rules of stored conversations: shown, dropped, restored, rewound, and gone with their messages.

use std::sync::Arc;

use contexture_compile::{EpochReason, Target};
use contexture_engine::{CompactOptions, Conversation, EngineError, GivenSummary};
use contexture_ir::{MessageId, NodeId, assistant_text, user};
use contexture_store::{EraseScope, RedactRequest, Store, erase_all};

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

/// The payload of a compile that stores nothing.
async fn payload(chat: &Conversation) -> String {
    chat.compile(&small())
        .await
        .unwrap()
        .payload
        .to_json()
        .to_string()
}

#[tokio::test]
async fn a_covered_rule_is_quoted_once_and_gone_when_it_is_dropped() {
    for summary in [None, GivenSummary::new("The user wanted something fixed.")] {
        let (chat, _) = long().await;
        let mut options = CompactOptions::default();
        if let Some(summary) = summary {
            options.compactor = Arc::new(summary);
        }
        let made = chat.compact(&small(), &options).await.unwrap();
        let manifest = made.draft.summary.join("\n");
        // The manifest would keep what the host drops.
        assert!(!manifest.contains(RULE), "{manifest}");
        let shown = payload(&chat).await;
        assert_eq!(shown.matches(RULE).count(), 1, "{shown}");
        assert!(shown.contains(&format!("turn 2: {RULE}")), "{shown}");
        let id = chat.rules().await.unwrap()[0].id.clone();
        chat.drop_rule(id.as_str()).await.unwrap();
        assert!(!payload(&chat).await.contains(RULE));
    }
}

#[tokio::test]
async fn a_checkpoint_brings_back_drops_pins_and_compactions() {
    let (chat, node) = long().await;
    let made = chat.compact(&small(), &CompactOptions::default()).await;
    let made = made.unwrap().node;
    let id = chat.rules().await.unwrap()[0].id.clone();
    chat.drop_rule(id.as_str()).await.unwrap();
    let then = payload(&chat).await;
    let (pins, covers) = (
        chat.pins().await.unwrap(),
        chat.compactions().await.unwrap(),
    );
    chat.checkpoint("kept").await.unwrap();

    chat.restore_rule(id.as_str()).await.unwrap();
    chat.pin(node).await.unwrap();
    chat.uncompact(made).await.unwrap();
    chat.save([user("And now?")]).await.unwrap();
    assert_ne!(payload(&chat).await, then);

    chat.restore("kept").await.unwrap();
    assert!(chat.rules().await.unwrap()[0].is_dropped);
    assert_eq!(chat.pins().await.unwrap(), pins);
    assert_eq!(chat.compactions().await.unwrap(), covers);
    assert_eq!(payload(&chat).await, then);
}

#[tokio::test]
async fn an_erased_owner_leaves_no_trace_of_rules_and_compactions() {
    let (chat, _) = long().await;
    let id = chat.rules().await.unwrap()[0].id.clone();
    compiled(&chat).await;
    chat.compact(&small(), &CompactOptions::default())
        .await
        .unwrap();
    chat.drop_rule(id.as_str()).await.unwrap();
    let engine = chat.engine().clone();
    let store: Arc<dyn Store> = Arc::clone(engine.store());
    erase_all(&*store, chat.owner(), &EraseScope::Owner)
        .await
        .unwrap();
    assert!(chat.rules().await.is_err() && chat.compile(&small()).await.is_err());
    // The same name again is another conversation: nothing is dropped, covered or planned in it.
    let again = engine.conversation("c").open().await.unwrap();
    assert!(again.rules().await.unwrap().is_empty());
    assert!(again.compactions().await.unwrap().is_empty());
    again.save([user(RULE)]).await.unwrap();
    let rules = again.rules().await.unwrap();
    assert!(!rules[0].is_dropped && rules[0].id != id);
    let shown = payload(&again).await;
    assert!(
        !shown.contains("Fix it") && !shown.contains("Earlier here"),
        "{shown}"
    );
}
