//! What a tool is given: whose things, and whether its answer is still waited for.

use contexture::ir::BranchName;
use contexture::ir::{MessageId, NodeId};
use contexture::store::ReadRequest;
use contexture::store::{EntityKind, Error as StoreError, NodeQuery, PathEnd, Span};
use contexture::{Cancel, Conversation, Engine, EngineError, Owner};

use crate::tool_error::ToolError;

/// The most digits and the fewest of an item's id.
const ID_PREFIX_LENGTH: std::ops::RangeInclusive<usize> = 4..=32;

/// One call: whose, and whether it was called off.
#[derive(Clone, Debug)]
pub(crate) struct ToolContext {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) cancel: Cancel,
}

/// Where an item stands.
#[derive(Clone, Debug)]
pub(crate) struct ItemLocation {
    /// Its node.
    pub(crate) node: NodeId,
    /// Its position on its path; the first is 1.
    pub(crate) position: u64,
    /// A path it is on: the handle's branch, if that is one.
    pub(crate) at: PathEnd,
}

impl ToolContext {
    /// A conversation of the owner's, on a branch or on the active one.
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

    /// The place of an item, by its id or the beginning of it, or of the last item of a message, by the whole id.
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
        // The newest first. A message's items may be on several branches; the handle's own is
        // preferred.
        for node in found.iter().rev() {
            let request = ReadRequest {
                at: branch.clone(),
                // One position is read, however long the path is.
                span: Span::Between(node.depth, node.depth),
                limit: None,
            };
            let page = store.read_path(chat.owner(), chat.id(), request).await?;
            if page.nodes.first().is_some_and(|there| there.id == node.id) {
                return Ok(ItemLocation {
                    node: node.id,
                    position: node.depth,
                    at: branch,
                });
            }
        }
        // On no path of this handle: the place itself ends a path, and that is what can be read.
        let last = found.last();
        let last = last.ok_or_else(|| StoreError::not_found(EntityKind::Message, id))?;
        Ok(ItemLocation {
            node: last.id,
            position: last.depth,
            at: PathEnd::Node(last.id),
        })
    }
}

/// Where a path ends: at a branch that is named, or where the handle is.
pub(crate) fn parse_branch_name(name: &str) -> Result<BranchName, ToolError> {
    Ok(BranchName::new(name).map_err(EngineError::from)?)
}

fn is_id_prefix(id: &str) -> bool {
    ID_PREFIX_LENGTH.contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
