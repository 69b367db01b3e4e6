//! The conversation's record: title, metadata, resource, counts; and the owner's list of conversations.

use contexture_ir::{ConversationId, Owner, Raw};
use contexture_store::{
    Conversation as Record, ConversationPage, ConversationUpdate, ListConversations,
    MetadataChange, TitleChange,
};

use super::conversation::Conversation;
use super::engine::Engine;
use crate::error::EngineError;

/// Loads the conversation's record: title, metadata, counts.
pub(crate) async fn load_info(chat: &Conversation) -> Result<Record, EngineError> {
    Ok(chat
        .store()
        .load_conversation(chat.owner(), chat.id())
        .await?)
}

/// Changes the title; `None` removes it.
pub(crate) async fn set_title(chat: &Conversation, title: Option<&str>) -> Result<(), EngineError> {
    let title = TitleChange::Set(title.map(str::to_owned));
    let at = chat.engine().now_ms();
    update_info(
        chat,
        ConversationUpdate {
            title,
            ..ConversationUpdate::new(at)
        },
    )
    .await
}

/// Sets or, with `None`, removes one metadata entry; others stay.
pub(crate) async fn set_metadata(
    chat: &Conversation,
    key: &str,
    value: Option<Raw>,
) -> Result<(), EngineError> {
    let metadata = MetadataChange::Merge([(key.to_owned(), value)].into());
    let at = chat.engine().now_ms();
    update_info(
        chat,
        ConversationUpdate {
            metadata,
            ..ConversationUpdate::new(at)
        },
    )
    .await
}

async fn update_info(chat: &Conversation, update: ConversationUpdate) -> Result<(), EngineError> {
    chat.store()
        .update_conversation(chat.owner(), chat.id(), update)
        .await?;
    Ok(())
}

/// The conversation's resource. It never changes.
pub(crate) async fn load_resource(chat: &Conversation) -> Result<Option<String>, EngineError> {
    // A resource never changes, so one read serves the life of the handle.
    if let Some(resource) = chat.inner.resource.get() {
        return Ok(resource.clone());
    }
    let resource = load_info(chat).await?.resource;
    Ok(chat.inner.resource.get_or_init(|| resource).clone())
}

/// The owner's conversations, most recently updated first, a page at a time.
pub(crate) async fn list_conversations(
    engine: &Engine,
    owner: &Owner,
    list: ListConversations,
) -> Result<ConversationPage, EngineError> {
    Ok(engine.store.list_conversations(owner, list).await?)
}

/// A conversation's record.
pub(crate) async fn load_conversation_info(
    engine: &Engine,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Record, EngineError> {
    Ok(engine.store.load_conversation(owner, id).await?)
}

/// Deletes a conversation and everything that hangs off it.
pub(crate) async fn delete_conversation(
    engine: &Engine,
    owner: &Owner,
    id: &ConversationId,
) -> Result<(), EngineError> {
    Ok(engine.store.delete_conversation(owner, id).await?)
}
