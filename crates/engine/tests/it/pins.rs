//! What is pinned stays in view.

use contexture_compile::Target;
use contexture_engine::EngineError;
use contexture_ir::{NodeId, assistant_text, user};
use contexture_store::{PathEnd, ReadRequest};

use crate::support::chat;

/// A conversation of many long messages, and its nodes.
async fn long() -> (contexture_engine::Conversation, Vec<NodeId>) {
    let chat = chat().await;
    for at in 0..30 {
        let text = format!("message {at}: {}", "words and more words ".repeat(20));
        chat.save([user(text.as_str()), assistant_text("yes")])
            .await
            .unwrap();
    }
    let store = chat.engine().store();
    let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let page = store
        .read_path(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    let nodes = page.nodes.iter().map(|node| node.id).collect();
    (chat, nodes)
}

#[tokio::test]
async fn pinned_message_is_sent_until_unpinned_or_rewound() {
    let (chat, nodes) = long().await;
    let target = Target::openai_chat("gpt-4o").window(1_200).reserve(200);
    let sends = async |what: &str| {
        let call = chat.compile(&target).await.unwrap();
        call.payload.to_json().contains(what)
    };
    assert!(!sends("message 10:").await);
    chat.pin(nodes[20]).await.unwrap();
    chat.pin(nodes[20]).await.unwrap();
    assert!(sends("message 10:").await);
    assert_eq!(chat.pins().await.unwrap().len(), 1);

    assert!(chat.unpin(nodes[20]).await.unwrap());
    assert!(!chat.unpin(nodes[20]).await.unwrap());
    assert!(!sends("message 10:").await);

    chat.pin(nodes[10]).await.unwrap();
    assert!(sends("message 5:").await);
    // Before the pin was set there is none.
    let messages = chat
        .messages(contexture_engine::MessageView::User)
        .await
        .unwrap();
    let last = contexture_ir::MessageId::new(messages.last().unwrap().id.clone()).unwrap();
    chat.rewind(&last).await.unwrap();
    assert!(chat.pins().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_not_there_cannot_be_pinned() {
    let (chat, _) = long().await;
    let refused = chat.pin(NodeId::from_bytes([7; 16])).await;
    assert!(matches!(refused, Err(EngineError::Store(_))), "{refused:?}");
    assert!(chat.pins().await.unwrap().is_empty());
}
