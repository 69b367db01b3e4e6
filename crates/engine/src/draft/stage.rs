//! Staged messages: fragments encoded, "the last assistant message" put in its place.

use contexture_ir::{Body, Fragment, Item, UiMessage, UiRole, text_part};
use contexture_store::ReadRequest;

use crate::error::EngineError;
use crate::handle::{Conversation, load_path};

pub(crate) fn encode_message(fragment: &Fragment) -> Result<StagedItem, EngineError> {
    if let Body::LastAssistant(text) = &fragment.body {
        return Ok(StagedItem::LastAssistant(text.clone()));
    }
    let message: UiMessage = match fragment.encode_message() {
        Some(Ok(message)) => message,
        Some(Err(source)) => {
            return Err(EngineError::Codec {
                name: fragment.name.clone(),
                source,
            });
        }
        None => {
            return Err(EngineError::NotAMessage {
                name: fragment.name.clone(),
            });
        }
    };
    Ok(StagedItem::Message(message))
}

/// How far back an output looks for the call it answers.
pub(crate) const ANSWER_WINDOW: u64 = 512;

/// One entry of a draft.
#[derive(Clone, Debug)]
pub(crate) enum StagedItem {
    Message(UiMessage),
    Item(Item),
    LastAssistant(String),
}

/// Puts a staged "last assistant message" in its place: the newest staged assistant message, else
/// the newest stored one, else a message of its own.
pub(crate) async fn replace_last_assistant(
    chat: &Conversation,
    staged: &mut Vec<StagedItem>,
) -> Result<(), EngineError> {
    let mut index = 0;
    while let Some(entry) = staged.get(index) {
        let StagedItem::LastAssistant(text) = entry else {
            index += 1;
            continue;
        };
        let parts = vec![text_part(text)];
        // A staged message is newer than any stored one.
        let earlier = staged.iter().take(index).rposition(|entry| {
            matches!(entry, StagedItem::Message(message) if message.role == UiRole::Assistant)
        });
        if let Some(StagedItem::Message(message)) = earlier.and_then(|at| staged.get_mut(at)) {
            message.parts = parts;
            staged.remove(index);
            continue;
        }
        // With the id of the stored message the commit treats it as an edit of that message.
        let id = last_assistant_id(chat).await?.unwrap_or_default();
        let role = UiRole::Assistant;
        if let Some(slot) = staged.get_mut(index) {
            *slot = StagedItem::Message(UiMessage {
                id,
                role,
                metadata: None,
                parts,
            });
        }
        index += 1;
    }
    Ok(())
}

/// The id of the newest assistant message on this branch.
async fn last_assistant_id(chat: &Conversation) -> Result<Option<String>, EngineError> {
    let mut at = chat.current_position();
    loop {
        let path = load_path(chat, ReadRequest::last_nodes(at, ANSWER_WINDOW)).await?;
        let found = path
            .nodes
            .iter()
            .zip(&path.items)
            .rev()
            .find(|(_, one)| one.item.is_model_output());
        if let Some((node, _)) = found {
            return Ok(Some(node.effective_message_id().to_string()));
        }
        match path.nodes.first().and_then(|node| node.parent) {
            Some(parent) => at = contexture_store::PathEnd::Node(parent),
            None => return Ok(None),
        }
    }
}
