//! Items in the tree.

use contexture::EngineError;
use contexture::ir::Raw;
use contexture::store::Node;
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// An item in the tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NodeDocument {
    /// The node's id.
    pub id: String,
    /// The node before it; `null`: it is the first.
    pub parent: Option<String>,
    /// Its place on its path, from 1.
    pub depth: u64,
    /// The message it belongs to.
    pub message: String,
    /// What kind of item it is.
    pub kind: &'static str,
    /// Who produced it: `user`, `model`, `tool`, `layer`, `system`, `import`.
    pub origin: &'static str,
    /// When it was stored, as the writer said.
    pub created: String,
    /// The item, as it is stored, byte for byte.
    #[schema(value_type = Object)]
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

/// A part of a path, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NodesDocument {
    /// The node the path ends at; `null` on an empty branch.
    pub head: Option<String>,
    /// The length of the whole path.
    pub depth: u64,
    /// The items.
    pub items: Vec<NodeDocument>,
    /// Whether there are more.
    pub more: bool,
    /// The `after` of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The messages of a path, oldest first, as the AI SDK has them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MessagesDocument {
    /// The branch.
    pub branch: String,
    /// The messages.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<contexture::UiMessage>,
}

/// What was stored.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SavedDocument {
    /// The branch it is on.
    pub branch: String,
    /// The head of the branch now.
    pub head: Option<String>,
    /// Whether the branch was opened for it, because a stored message was edited.
    pub opened: bool,
    /// The ids of the messages as they were given, new ids for edited ones.
    pub messages: Vec<String>,
    /// The nodes that were stored, in order.
    pub items: Vec<String>,
}

impl From<&contexture::Committed> for SavedDocument {
    fn from(committed: &contexture::Committed) -> Self {
        Self {
            branch: committed.branch.to_string(),
            head: committed.head.map(|head| head.to_string()),
            opened: committed.opened_branch,
            messages: committed.messages.iter().map(ToString::to_string).collect(),
            items: committed.nodes.iter().map(ToString::to_string).collect(),
        }
    }
}
