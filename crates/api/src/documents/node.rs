//! Items in the tree.

use contexture::EngineError;
use contexture::ir::Raw;
use contexture::store::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::documents::text::LossDocument;
use crate::schema::{
    ItemKindSchema, ItemSchema, MessageInputSchema, OriginSchema, UiMessageSchema,
};
use crate::time::format_timestamp;

/// An item at its position in the tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NodeDocument {
    /// Id of the node.
    pub id: String,
    /// Id of the node before it; `null` for the first.
    pub parent: Option<String>,
    /// Position of the node on its path, from 1.
    pub depth: u64,
    /// Id of the message that the item belongs to.
    pub message: String,
    /// Kind of the item.
    #[schema(value_type = ItemKindSchema)]
    pub kind: &'static str,
    /// Producer of the item.
    #[schema(value_type = OriginSchema)]
    pub origin: &'static str,
    /// Time at which the item was stored (RFC 3339), as the writer gave it.
    pub created: String,
    /// The item as JSON, byte for byte as it is stored.
    #[schema(value_type = ItemSchema)]
    pub item: Raw,
}

impl TryFrom<&Node> for NodeDocument {
    type Error = EngineError;

    fn try_from(node: &Node) -> Result<Self, EngineError> {
        // Raw, because numbers and the order of members must come out as they were stored.
        let item = Raw::parse(&*node.json).map_err(|source| EngineError::StoredItem {
            node: node.id,
            source,
        })?;
        Ok(Self {
            id: node.id.to_string(),
            parent: node.parent.map(|parent| parent.to_string()),
            depth: node.depth,
            message: node.effective_message_id().into_owned(),
            kind: node.kind.as_str(),
            origin: node.origin.as_str(),
            created: format_timestamp(node.created_ms),
            item,
        })
    }
}

/// A page of the items on a path, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NodesDocument {
    /// Id of the node at which the path ends; `null` on an empty branch.
    pub head: Option<String>,
    /// Number of items on the entire path.
    pub depth: u64,
    /// The items of this page, oldest first.
    pub items: Vec<NodeDocument>,
    /// Whether another page follows.
    pub more: bool,
    /// Value of `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The messages of a path, oldest first, in the format of the AI SDK.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MessagesDocument {
    /// Name of the branch that the path ends at.
    pub branch: String,
    /// The messages of the path, as `UIMessage` objects of the AI SDK.
    #[schema(value_type = Vec<UiMessageSchema>)]
    pub messages: Vec<contexture::ir::UiMessage>,
    /// Value of `after` for the page of the messages before these; `null` if there are none.
    pub next: Option<String>,
}

/// Messages to be stored, and items behind them, in one transaction.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendDocument {
    /// Messages in the format of the AI SDK, in that of a provider, or items. A message of the AI SDK whose id is stored
    /// is compared: one that is equal is skipped, one that grew at the end is extended, one that changed opens a branch.
    #[serde(default)]
    #[schema(value_type = Option<Vec<MessageInputSchema>>)]
    pub messages: Option<Vec<Raw>>,
    /// Items in the format of Open Responses.
    #[serde(default)]
    #[schema(value_type = Option<Vec<ItemSchema>>)]
    pub items: Option<Vec<Raw>>,
}

/// The result of an append.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SavedDocument {
    /// Name of the branch that the messages are on.
    pub branch: String,
    /// Id of the head of that branch after the append; `null` if the branch is empty.
    pub head: Option<String>,
    /// Whether the append opened that branch, because a stored message was edited.
    pub opened: bool,
    /// Ids of the messages in the order they were given, with new ids for edited ones.
    pub messages: Vec<String>,
    /// Ids of the nodes that were stored, in order.
    pub items: Vec<String>,
    /// Content of messages in a provider's format that no item can hold; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub losses: Vec<LossDocument>,
}

impl From<&contexture::engine::Committed> for SavedDocument {
    fn from(committed: &contexture::engine::Committed) -> Self {
        Self {
            branch: committed.branch.to_string(),
            head: committed.head.map(|head| head.to_string()),
            opened: committed.opened_branch,
            messages: committed.messages.iter().map(ToString::to_string).collect(),
            items: committed.nodes.iter().map(ToString::to_string).collect(),
            losses: Vec::new(),
        }
    }
}

/// A pinned node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PinDocument {
    /// Id of the node.
    pub node: String,
}

impl From<contexture::ir::NodeId> for PinDocument {
    fn from(node: contexture::ir::NodeId) -> Self {
        Self {
            node: node.to_string(),
        }
    }
}

/// The pinned nodes of a branch. A pin of a node that is not on its path has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PinsDocument {
    /// The pinned nodes, in the order of their ids.
    pub pins: Vec<PinDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}
