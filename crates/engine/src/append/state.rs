//! Changing a conversation's state at the head of its branch.
//!
//! A change goes with an item that carries it, or with a *state node*: an item of kind `ctx:state` with no audience.
//!
//! Not here: reading state (`handle`), what the entries mean (`state`).

use contexture_ir::{Audience, Extension, Item, NodeId, Origin, Raw};
use contexture_store::{AppendPoint, AppendRequest, NewItem, StateChange, StatePatch};

use super::append;
use crate::error::EngineError;
use crate::handle::Conversation;

const KIND: &str = "ctx:state";

/// The item that carries a change of state and nothing else.
///
/// # Errors
/// None in practice: its JSON is fixed.
pub fn state_node(id: NodeId, at_ms: i64) -> Result<NewItem, EngineError> {
    let item = Item::Extension(Extension {
        kind: KIND.to_owned(),
        id: None,
        raw: Raw::parse(format!(r#"{{"type":"{KIND}"}}"#))?,
    });
    Ok(NewItem {
        origin: Origin::System,
        audience: Audience::NONE,
        ..NewItem::new(id, &item, item.to_json(), at_ms)
    })
}

/// Whether an item is such a node's.
pub(crate) fn is_state_node(item: &Item) -> bool {
    matches!(item, Item::Extension(extension) if extension.kind == KIND)
}

/// Appends a change of state to this branch, with the item that carries it or a node of its own, and
/// gives the new head.
pub(crate) async fn append_state(
    chat: &Conversation,
    item: Option<NewItem>,
    change: StateChange,
) -> Result<Option<NodeId>, EngineError> {
    append_states(chat, item, vec![change]).await
}

/// As [`Self::append_state`], of several changes.
pub(crate) async fn append_states(
    chat: &Conversation,
    item: Option<NewItem>,
    changes: Vec<StateChange>,
) -> Result<Option<NodeId>, EngineError> {
    let now = chat.engine().now_ms();
    let item = match item {
        Some(item) => item,
        None => state_node(NodeId::of_operation(&chat.engine().new_key(), 0), now)?,
    };
    // At whatever the head is then: the condition of the change itself notices a concurrent change, and
    // appends of others do not conflict with it.
    let at = AppendPoint::Tip {
        branch: chat.branch(),
    };
    let mut request = AppendRequest::new(at, vec![item], now);
    request.patch = StatePatch { changes, from: 0 };
    chat.apply_fence(&mut request);
    let appended = append(chat.store(), chat.owner(), chat.id(), request).await?;
    Ok(appended.head)
}
