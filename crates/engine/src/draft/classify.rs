//! Comparing staged messages and items with those on the branch.
//!
//! A message whose id is on the branch with the same content is left alone; one whose content only grew at the end of the
//! branch gets its new items; one that changed opens a branch before it. An item whose id is on the branch is left alone, or
//! refused if it says something else.

use std::sync::Arc;

use contexture_ir::{
    ContentHash, Extra, Item, MessageId, NodeId, UiMessage, UiRole, canonical_json, meaning_hash,
    text_part,
};
use contexture_store::{Node, PathEnd};
use contexture_wire::ui::{
    FoldAudience, FoldItem, FoldOptions, UnknownFields, fold, lift_message, strip_reminders,
    validate,
};

use super::stage::{StagedContent, StagedEntry};
use crate::error::EngineError;
use crate::handle::{Conversation, Secrets, read_full_path};
use crate::path::{message_id_of, parse_node_item};
use crate::refs::message_nodes_on_path;

/// One staged message, with what the branch has stored under its id.
pub(crate) struct StagedNode {
    /// Place of its entry among all that was pushed to the draft.
    pub(crate) index: usize,
    pub(crate) id: MessageId,
    /// As they are stored.
    pub(crate) items: Vec<Item>,
    /// Meaning hashes of the items before redaction, stored with them; saving does not compare them.
    pub(crate) hashes: Vec<Option<ContentHash>>,
    pub(crate) stored: Vec<Arc<Node>>,
    pub(crate) action: SaveAction,
    /// An output that was pushed alone joins the message of its call; what is part of a message stays there.
    pub(crate) joins_call: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaveAction {
    New,
    Same,
    /// The branch ends with this message and has its first so many items.
    Grown(usize),
    Changed,
}

/// What entries are compared with: the path that a draft goes behind.
pub(crate) struct DraftBase<'a> {
    pub(crate) chat: &'a Conversation,
    pub(crate) key: &'a [u8; 16],
    /// The end of the path, read once.
    pub(crate) head: Option<NodeId>,
    /// The same as a place to read at.
    pub(crate) at: PathEnd,
}

impl DraftBase<'_> {
    /// Compares an entry with what is stored; `None` if it says nothing that could be stored.
    pub(crate) async fn classify(
        &self,
        entry: StagedEntry,
    ) -> Result<Option<StagedNode>, EngineError> {
        let index = entry.index;
        let message = match entry.content {
            StagedContent::Message(message) => message,
            StagedContent::LastAssistant(text) => UiMessage::text(UiRole::Assistant, &text),
            StagedContent::Item(item) => return self.classify_item(index, item).await.map(Some),
        };
        // Checked and stored as it came: what the SDK does not know is the application's.
        validate(std::slice::from_ref(&message))?;
        // A model's message that says nothing stands for one that is to come.
        if message.parts.is_empty() && message.metadata.is_none() && message.extra.is_empty() {
            return Ok(None);
        }
        let (id, stored) = if message.id.is_empty() {
            // A message without an id is new by definition. Its id derives from the key of the draft, so that a
            // commit that is repeated stores it once.
            (derived_message_id(self.key, index), Vec::new())
        } else {
            let id = MessageId::new(&message.id)?;
            let stored = message_nodes_on_path(self.chat, &self.at, &id).await?;
            (id, stored)
        };
        let mut lifted = lift_message(&message);
        // Hashed before redaction, so that the same message is recognised when a client sends it again.
        let hashes = lifted.items.iter().map(meaning_hash).collect();
        let mut message = message;
        // Redacted before it is compared: what is stored is redacted too, and an unredacted copy would look edited.
        if let Some(secrets) = self.chat.engine().secrets() {
            message = redact_message(secrets, message);
            lifted = lift_message(&message);
        }
        let action = classify_message(&message, &lifted.items, &stored, self.head)?;
        Ok(Some(StagedNode {
            index,
            id,
            items: lifted.items,
            hashes,
            stored,
            action,
            joins_call: false,
        }))
    }

    /// Compares an item with the one of its id on the path; one without an id is always new.
    async fn classify_item(&self, index: usize, item: Item) -> Result<StagedNode, EngineError> {
        // Hashed before redaction, as items of messages are.
        let hashes = vec![meaning_hash(&item)];
        let item = match self.chat.engine().secrets() {
            Some(secrets) => secrets.redact_item(&item),
            None => item,
        };
        let stored = match item_key(&item) {
            Some(id) => self.find_item(id, &item).await?,
            None => None,
        };
        let id = match &stored {
            Some(node) => message_id_of(node)?,
            None => derived_message_id(self.key, index),
        };
        Ok(StagedNode {
            index,
            id,
            hashes,
            action: match stored {
                Some(_) => SaveAction::Same,
                None => SaveAction::New,
            },
            stored: stored.into_iter().collect(),
            joins_call: matches!(item, Item::FunctionCallOutput(_)),
            items: vec![item],
        })
    }

    /// The newest node on the path whose item has this id.
    ///
    /// # Errors
    /// [`EngineError::ItemConflict`] if it says something else: an item never changes.
    async fn find_item(&self, id: &str, item: &Item) -> Result<Option<Arc<Node>>, EngineError> {
        if self.head.is_none() {
            return Ok(None);
        }
        // Ids of items are not indexed. The handle keeps the path, so that only what is new of it is read.
        let path = read_full_path(self.chat, self.at.clone()).await?;
        let mut known = path.nodes.iter().zip(&path.items).rev();
        let Some((node, stored)) = known.find(|(_, known)| item_key(&known.item) == Some(id))
        else {
            return Ok(None);
        };
        require_equal_items(id, item, &stored.item)?;
        Ok(Some(Arc::clone(node)))
    }
}

/// The id by which an item is known again, if it has one. Our own bookkeeping has none: its ids are those of messages.
pub(crate) fn item_key(item: &Item) -> Option<&str> {
    match item {
        Item::Extension(extension) if extension.kind.starts_with("ctx:") => None,
        item => item.id().filter(|id| !id.is_empty()),
    }
}

/// Refuses two items of one id that are not the same JSON value.
pub(crate) fn require_equal_items(id: &str, item: &Item, known: &Item) -> Result<(), EngineError> {
    if item == known || canonical_json(&item.to_json()) == canonical_json(&known.to_json()) {
        return Ok(());
    }
    Err(EngineError::ItemConflict {
        item: id.to_owned(),
    })
}

/// The id of a message that came without one.
pub(crate) fn derived_message_id(key: &[u8; 16], index: usize) -> MessageId {
    MessageId::of_node(NodeId::of_operation(key, index))
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
        unknown_fields: UnknownFields::Kept,
        ..FoldOptions::default()
    };
    // Folded and compared as messages, not as items: several ways of lifting give the same message.
    let folded = fold(&fold_items, &options);
    if let [one] = folded.as_slice() {
        // A front end sends back what people are shown, which holds no reminders.
        let mut shown = one.clone();
        strip_reminders(&mut shown);
        if is_same_message(one, message) || is_same_message(&shown, message) {
            return Ok(SaveAction::Same);
        }
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
        extra: Extra::new(),
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
