//! A stored path, read back as items.

use std::sync::Arc;

use contexture_ir::{ConversationId, Item, MessageId, NodeId, Owner};
use contexture_store::{Node, ReadRequest, Store};

use crate::error::EngineError;

/// Nodes from the first to a head, beside their items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    pub(crate) head: Option<NodeId>,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) items: Vec<Arc<Item>>,
}

impl Path {
    /// Reads and parses a part of a path.
    pub(crate) async fn load(
        store: &dyn Store,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<Self, EngineError> {
        let page = store.read(owner, id, request).await?;
        let items = page
            .nodes
            .iter()
            .map(|node| parse(node))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            head: page.head,
            nodes: page.nodes,
            items,
        })
    }
}

/// The item of a node.
pub(crate) fn parse(node: &Node) -> Result<Arc<Item>, EngineError> {
    Item::parse(&node.json)
        .map(Arc::new)
        .map_err(|source| EngineError::StoredItem {
            node: node.id,
            source,
        })
}

/// The message a node belongs to.
pub(crate) fn message_of(node: &Node) -> Result<MessageId, EngineError> {
    Ok(match &node.message_id {
        Some(id) => id.clone(),
        None => MessageId::new(node.id.to_string())?,
    })
}
