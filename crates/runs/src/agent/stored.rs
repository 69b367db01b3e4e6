//! Nodes of a conversation by their ids, wherever they stand.

use std::sync::Arc;

use contexture_engine::{Engine, EngineError};
use contexture_ir::{ConversationId, NodeId, Owner};
use contexture_store::{Error as StoreError, Node, NodeQuery};

/// The node of this id, if there is one.
pub(crate) async fn find_node(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    id: NodeId,
) -> Result<Option<Arc<Node>>, EngineError> {
    let found = engine
        .store()
        .find_nodes(owner, conversation, NodeQuery::Id(id));
    match found.await {
        Ok(found) => Ok(found.into_iter().next()),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
