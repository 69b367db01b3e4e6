//! Resolving: the system prompt and the messages, as an AI SDK program takes them.

use contexture_compile::system_prompt;
use contexture_ir::{UiMessage, UiRole};
use contexture_store::PathEnd;
use contexture_wire::ui::{UnknownFields, strip_reminders};

use super::messages::{FoldNode, MessageView, fold_messages};
use crate::call::contributions_at;
use crate::error::EngineError;
use crate::handle::Conversation;

/// What a model sees, as text and messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The system prompt: the leading messages of an imported history, the fragments, and what the handle and its layers add
    /// to it.
    pub system_prompt: String,
    /// The messages, validated.
    pub messages: Vec<UiMessage>,
}

/// Resolves the branch to the system prompt and the stored messages.
pub(crate) async fn resolve_conversation(chat: &Conversation) -> Result<Resolved, EngineError> {
    resolve_path(chat, Some(chat.current_position()), &[]).await
}

/// Resolves a path with nodes behind it that are not stored. Without a place there are only those.
pub(crate) async fn resolve_path(
    chat: &Conversation,
    at: Option<PathEnd>,
    pending: &[FoldNode],
) -> Result<Resolved, EngineError> {
    // A program hands them to the SDK, which would leave out what it does not know.
    let (view, unknown) = (MessageView::Model, UnknownFields::Dropped);
    let (at, messages) = fold_messages(chat, view, unknown, at, pending).await?;
    let items: Vec<_> = pending.iter().map(FoldNode::to_path_item).collect();
    let contributions = contributions_at(chat, at, items).await?;
    Ok(Resolved {
        system_prompt: system_prompt(&contributions)?,
        messages,
    })
}

/// Loads the stored messages of this branch as this reader sees them.
pub(crate) async fn load_messages(
    chat: &Conversation,
    audience: MessageView,
) -> Result<Vec<UiMessage>, EngineError> {
    let at = Some(chat.current_position());
    let (_, mut messages) = fold_messages(chat, audience, UnknownFields::Kept, at, &[]).await?;
    retain_shown(audience, &mut messages);
    Ok(messages)
}

/// Takes out what this reader does not see of messages that were folded.
pub(super) fn retain_shown(audience: MessageView, messages: &mut Vec<UiMessage>) {
    if audience == MessageView::User {
        messages.iter_mut().for_each(strip_reminders);
        messages.retain(|message| !message.parts.is_empty() || message.role != UiRole::User);
    }
}
