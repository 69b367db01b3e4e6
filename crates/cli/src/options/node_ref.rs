//! A place in a conversation, as people name it: a message's id, or the beginning of a node's.

use std::sync::Arc;

use contexture::Conversation;
use contexture::ir::{MessageId, NodeId};
use contexture::store::{EntityKind, Error as StoreError, Node, NodeQuery};

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The fewest digits of a node's id.
const FEWEST: usize = 4;

/// What a name names.
#[derive(Clone, Debug)]
pub(crate) enum NodeRef {
    /// A message, by its whole id; its nodes wherever they stand.
    Message(MessageId, Vec<Arc<Node>>),
    /// A node, by the beginning of its id.
    Node(Arc<Node>),
}

impl NodeRef {
    /// The first node of what is named.
    pub(crate) fn first_node(&self) -> Option<NodeId> {
        match self {
            Self::Message(_, nodes) => nodes.first().map(|node| node.id),
            Self::Node(node) => Some(node.id),
        }
    }

    /// The last node of what is named.
    pub(crate) fn last_node(&self) -> Option<NodeId> {
        match self {
            Self::Message(_, nodes) => nodes.last().map(|node| node.id),
            Self::Node(node) => Some(node.id),
        }
    }
}

/// Finds a place. The whole id of a message is looked for before the beginning of a node's.
///
/// # Errors
/// There is no such place, or more than one.
pub(crate) async fn resolve_node_ref(chat: &Conversation, name: &str) -> Outcome<NodeRef> {
    let store = chat.engine().store();
    // A message's whole id goes first: it may look like the beginning of a node's.
    if let Ok(id) = MessageId::new(name) {
        let query = NodeQuery::Message(id.clone());
        match store.find_nodes(chat.owner(), chat.id(), query).await {
            Ok(nodes) => return Ok(NodeRef::Message(id, nodes)),
            // Then it may be the beginning of a node's id.
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let hex = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Nodes have 32 hexadecimal digits; anything else could only have been a message.
    if !hex || name.len() > 32 {
        return Err(StoreError::not_found(EntityKind::Message, name).into());
    }
    if name.len() < FEWEST {
        let message = format!("{name:?} is too short for an id: give at least {FEWEST} digits");
        return Err(Failure::new(Exit::Usage, "usage", message)
            .with_hint("`contexture log` shows ids as short as they are unique"));
    }
    let query = NodeQuery::Prefix(name.to_ascii_lowercase());
    let nodes = store.find_nodes(chat.owner(), chat.id(), query).await?;
    match nodes.into_iter().next() {
        Some(node) => Ok(NodeRef::Node(node)),
        None => Err(StoreError::not_found(EntityKind::Message, name).into()),
    }
}
