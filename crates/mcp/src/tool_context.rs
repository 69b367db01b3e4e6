//! What a tool is given: whose things, and whether its answer is still waited for.

use contexture::compile::Cancel;
use contexture::ir::{BranchName, MessageId, NodeId};
use contexture::store::{EntityKind, Error as StoreError, NodeQuery, PathEnd};
use contexture::{Conversation, Engine, EngineError, Owner};
use contexture_api::operations::find_place;

use crate::tool_error::ToolError;

/// Number of hexadecimal digits in an item's id, or in the beginning of one.
const ID_PREFIX_LENGTH: std::ops::RangeInclusive<usize> = 4..=32;

/// The context of one call: engine, owner and cancellation.
#[derive(Clone, Debug)]
pub(crate) struct ToolContext {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) cancel: Cancel,
}

/// The location of an item in a conversation.
#[derive(Clone, Debug)]
pub(crate) struct ItemLocation {
    /// Id of the node that holds the item.
    pub(crate) node: NodeId,
    /// Position of the item on its path; the first is 1.
    pub(crate) position: u64,
    /// End of a path that the item is on: the handle's branch, if it is on that.
    pub(crate) at: PathEnd,
}

impl ToolContext {
    /// Opens the owner's conversation of this id, on a branch or on the active one.
    pub(crate) async fn open_conversation(
        &self,
        id: &str,
        branch: Option<&str>,
    ) -> Result<Conversation, ToolError> {
        // The owner always comes from the caller, never from arguments.
        let mut builder = self.engine.conversation(id).owner(self.owner.as_str());
        if let Some(branch) = branch {
            builder = builder.branch(branch);
        }
        Ok(builder.open_existing().await?)
    }

    /// Finds an item by its id or the beginning of that, or the last item of a message by the message's full id.
    pub(crate) async fn locate_item(
        &self,
        chat: &Conversation,
        id: &str,
    ) -> Result<ItemLocation, ToolError> {
        let store = chat.engine().store();
        let nodes = async |query| store.find_nodes(chat.owner(), chat.id(), query).await;
        let message = MessageId::new(id)?;
        // Messages first: a message's id may look like the beginning of an item's.
        let found = match nodes(NodeQuery::Message(message)).await {
            Err(StoreError::NotFound { .. }) if is_id_prefix(id) => {
                nodes(NodeQuery::Prefix(id.to_ascii_lowercase())).await?
            }
            other => other?,
        };
        let branch = PathEnd::Branch(chat.branch());
        let place = find_place(&**store, (chat.owner(), chat.id()), &branch, &found).await?;
        let place = place.ok_or_else(|| StoreError::not_found(EntityKind::Message, id))?;
        Ok(ItemLocation {
            node: place.node.id,
            position: place.node.depth,
            at: place.at,
        })
    }
}

/// Parses the name of a branch.
pub(crate) fn parse_branch_name(name: &str) -> Result<BranchName, ToolError> {
    Ok(BranchName::new(name).map_err(EngineError::from)?)
}

fn is_id_prefix(id: &str) -> bool {
    ID_PREFIX_LENGTH.contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
