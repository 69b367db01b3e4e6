//! A conversation's state at a node: reading it, changing it.
//!
//! A change goes with an item that carries it, or with a node of its own, `ctx:state`, which nobody is
//! shown. Not here: what the entries mean.

use contexture_ir::{Audience, Extension, Item, NodeId, Origin, Raw};
use contexture_store::{
    AppendPoint, AppendRequest, NewItem, NodeState, PathEnd, StateChange, StatePatch, StateRequest,
};

use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::state_list::{StateList, StateListEntry};

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

impl Conversation {
    /// The entries whose keys begin so, with their values.
    pub(crate) async fn state_at(
        &self,
        at: PathEnd,
        prefix: &str,
    ) -> Result<NodeState, EngineError> {
        let request = StateRequest {
            prefix: prefix.to_owned(),
            ..StateRequest::all_entries(at)
        };
        Ok(self
            .store()
            .read_state(self.owner(), self.id(), request)
            .await?)
    }

    /// A list at a node.
    pub(crate) async fn load_state_list<T: StateListEntry>(
        &self,
        at: PathEnd,
    ) -> Result<StateList<T>, EngineError> {
        StateList::from_state(&self.state_at(at, T::KEY).await?)
    }

    /// Appends a change of state to this branch, with the item that carries it or a node of its own, and
    /// gives the new head.
    pub(crate) async fn append_state(
        &self,
        item: Option<NewItem>,
        change: StateChange,
    ) -> Result<Option<NodeId>, EngineError> {
        self.append_states(item, vec![change]).await
    }

    /// As [`Self::append_state`], of several changes.
    pub(crate) async fn append_states(
        &self,
        item: Option<NewItem>,
        changes: Vec<StateChange>,
    ) -> Result<Option<NodeId>, EngineError> {
        let now = self.engine().now_ms();
        let item = match item {
            Some(item) => item,
            None => state_node(Engine::node_id(&self.engine().new_key(), 0), now)?,
        };
        let at = AppendPoint::Tip {
            branch: self.branch(),
        };
        let mut request = AppendRequest::new(at, vec![item], now);
        request.patch = StatePatch { changes, from: 0 };
        let store = self.store();
        let appended = store.append_items(self.owner(), self.id(), request).await?;
        Ok(appended.head)
    }
}
