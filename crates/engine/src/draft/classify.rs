//! Comparing staged messages with those on the branch.
//!
//! A message whose id is on the branch with the same content is left alone; one whose content only grew at the end of the
//! branch gets its new items; one that changed opens a branch before it.

use std::sync::Arc;

use contexture_ir::{
    ContentHash, Item, MessageId, NodeId, UiMessage, UiRole, canonical_json, meaning_hash,
    text_part,
};
use contexture_store::Node;
use contexture_wire::ui::{FoldAudience, FoldItem, FoldOptions, fold, lift_message, validate};

use super::stage::StagedItem;
use crate::error::EngineError;
use crate::handle::{Conversation, Secrets};
use crate::path::parse_node_item;
use crate::refs::message_nodes_on_branch;

/// One staged message, with what the branch has stored under its id.
pub(crate) struct StagedNode {
    pub(crate) id: MessageId,
    /// As they are stored.
    pub(crate) items: Vec<Item>,
    /// Meaning hashes of the items before redaction, stored with them; saving does not compare them.
    pub(crate) hashes: Vec<Option<ContentHash>>,
    pub(crate) stored: Vec<Arc<Node>>,
    pub(crate) action: SaveAction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaveAction {
    New,
    Same,
    /// The branch ends with this message and has its first so many items.
    Grown(usize),
    Changed,
}

pub(crate) async fn classify_staged(
    chat: &Conversation,
    key: &[u8; 16],
    index: usize,
    staged: StagedItem,
    head: Option<NodeId>,
) -> Result<StagedNode, EngineError> {
    let message = match staged {
        StagedItem::Message(message) => message,
        StagedItem::LastAssistant(text) => UiMessage::text(UiRole::Assistant, &text),
        StagedItem::Item(item) => {
            return Ok(stage_item(chat, derived_message_id(key, index)?, item));
        }
    };
    // A message without parts may stand for one that is to come; it is not worth storing.
    let message = validate(std::slice::from_ref(&message))?
        .pop()
        .unwrap_or(message);
    let (id, stored) = if message.id.is_empty() {
        // A message without an id is new by definition. Its id derives from the key of the draft, so that a
        // commit that is repeated stores it once.
        (derived_message_id(key, index)?, Vec::new())
    } else {
        let id = MessageId::new(&message.id)?;
        let stored = message_nodes_on_branch(chat, &id).await?;
        (id, stored)
    };
    let mut lifted = lift_message(&message);
    // Hashed before redaction, so that the same message is recognised when a client sends it again.
    let hashes = lifted.items.iter().map(meaning_hash).collect();
    let mut message = message;
    // Redacted before it is compared: what is stored is redacted too, and an unredacted copy would look edited.
    if let Some(secrets) = chat.engine().secrets() {
        message = redact_message(secrets, message);
        lifted = lift_message(&message);
    }
    let verdict = classify_message(&message, &lifted.items, &stored, head)?;
    Ok(StagedNode {
        id,
        items: lifted.items,
        hashes,
        stored,
        action: verdict,
    })
}

/// Stages an item that is no message: it is always new.
fn stage_item(chat: &Conversation, id: MessageId, item: Item) -> StagedNode {
    // Hashed before redaction, as items of messages are.
    let hashes = vec![meaning_hash(&item)];
    let item = match chat.engine().secrets() {
        Some(secrets) => secrets.redact_item(&item),
        None => item,
    };
    StagedNode {
        id,
        items: vec![item],
        hashes,
        stored: Vec::new(),
        action: SaveAction::New,
    }
}

pub(crate) fn derived_message_id(key: &[u8; 16], index: usize) -> Result<MessageId, EngineError> {
    let id = NodeId::derive("message", &[key, &(index as u64).to_le_bytes()]);
    Ok(MessageId::new(id.to_string())?)
}

fn classify_message(
    message: &UiMessage,
    items: &[Item],
    stored: &[Arc<Node>],
    head: Option<NodeId>,
) -> Result<SaveAction, EngineError> {
    if stored.is_empty() {
        return Ok(SaveAction::New);
    }
    let known: Vec<Item> = stored
        .iter()
        .map(|node| parse_node_item(node))
        .collect::<Result<_, _>>()?;
    let fold_items: Vec<FoldItem<'_>> = known
        .iter()
        .map(|item| FoldItem {
            message_id: Some(message.id.as_str()),
            ..FoldItem::new(item)
        })
        .collect();
    let options = FoldOptions {
        audience: FoldAudience::Everyone,
        include_system: true,
        ..FoldOptions::default()
    };
    // Folded and compared as messages, not as items: several ways of lifting give the same message.
    let folded = fold(&fold_items, &options);
    if let [one] = folded.as_slice()
        && is_same_message(one, message)
    {
        return Ok(SaveAction::Same);
    }
    // In the middle of a branch a message cannot grow in place: what follows was an answer to it as it was.
    let at_head = stored.last().map(|node| node.id) == head;
    let prefix = known.len() < items.len()
        && known
            .iter()
            .zip(items)
            .all(|(known, item)| is_same_item(known, item));
    Ok(if at_head && prefix {
        SaveAction::Grown(known.len())
    } else {
        SaveAction::Changed
    })
}

/// A message without the secrets in it.
fn redact_message(secrets: &Secrets, message: UiMessage) -> UiMessage {
    let redacted = serde_json::to_string(&message).ok();
    let redacted = redacted.and_then(|json| UiMessage::parse(&secrets.redact(&json)).ok());
    // Text that could not be cleaned must not be stored: better a placeholder than a secret.
    redacted.unwrap_or_else(|| UiMessage {
        metadata: None,
        parts: vec![text_part("[redacted]")],
        ..message
    })
}

fn is_same_message(a: &UiMessage, b: &UiMessage) -> bool {
    let text = |message: &UiMessage| {
        serde_json::to_string(message)
            .ok()
            .and_then(|json| canonical_json(&json))
    };
    text(a).is_some_and(|a| text(b).is_some_and(|b| a == b))
}

fn is_same_item(a: &Item, b: &Item) -> bool {
    match (meaning_hash(a), meaning_hash(b)) {
        (Some(a), Some(b)) => a == b,
        _ => canonical_json(&a.to_json()) == canonical_json(&b.to_json()),
    }
}
