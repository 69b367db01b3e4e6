//! What a handle has read is read once, and never shown when it no longer holds.

use contexture_compile::Target;
use contexture_engine::Conversation;
use contexture_ir::{MessageId, assistant_text, user};
use contexture_store::{PathEnd, ReadRequest, RedactRequest};

use crate::support::chat;

/// A handle that has read nothing compiles the same.
async fn as_anew(chat: &Conversation) -> String {
    let target = Target::openai_chat("gpt-4o");
    let seen = chat.compile(&target).await.unwrap().payload.to_json();
    let anew = chat.engine().conversation(chat.id().as_str());
    let anew = anew.branch(chat.branch().as_str()).open().await.unwrap();
    let anew = anew.compile(&target).await.unwrap().payload.to_json();
    assert_eq!(seen, anew);
    seen
}

#[tokio::test]
async fn what_another_handle_appends_and_where_one_rewinds_to_is_seen() {
    let chat = chat().await;
    chat.save([user("one"), assistant_text("two")])
        .await
        .unwrap();
    assert!(as_anew(&chat).await.contains("two"));
    let other = chat.engine().conversation(chat.id().as_str());
    let other = other.open().await.unwrap();
    other.save([user("three")]).await.unwrap();
    assert!(as_anew(&chat).await.contains("three"));

    let messages = chat
        .messages(contexture_engine::MessageView::User)
        .await
        .unwrap();
    let answer = MessageId::new(messages[1].id.clone()).unwrap();
    chat.rewind(&answer).await.unwrap();
    assert!(!as_anew(&chat).await.contains("three"));
    // As long as the path that was read before, and another one.
    chat.save([user("four")]).await.unwrap();
    let now = as_anew(&chat).await;
    assert!(now.contains("four") && !now.contains("three"));
}

#[tokio::test]
async fn what_was_redacted_since_is_not_shown() {
    let chat = chat().await;
    chat.save([user("a secret"), assistant_text("I see")])
        .await
        .unwrap();
    assert!(as_anew(&chat).await.contains("a secret"));
    let store = chat.engine().store();
    let path = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let page = store
        .read_path(chat.owner(), chat.id(), path)
        .await
        .unwrap();
    let request = RedactRequest {
        nodes: vec![page.nodes[0].id],
        values: Vec::new(),
        blobs: Vec::new(),
        at_ms: 2_000,
    };
    store
        .redact_content(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    assert!(!as_anew(&chat).await.contains("a secret"));
}
