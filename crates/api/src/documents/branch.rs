//! Branches and checkpoints: names that point into a tree.

use contexture::engine::MovedCheckpoint;
use contexture::store::{Branch, Checkpoint};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// A branch: a name for a node, which moves with each append.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchDocument {
    /// Name of the branch, unique in its conversation.
    pub name: String,
    /// Id of the node that it points to; `null` while the branch is empty.
    pub head: Option<String>,
    /// Whether it is the active branch, which is used where none is named.
    pub active: bool,
    /// Number of messages on its path.
    pub messages: u64,
    /// Number of items on its path.
    pub items: u64,
    /// Number of turns on its path.
    pub turns: u64,
    /// Time of its creation (RFC 3339), as the writer gave it.
    pub created: String,
}

impl From<&Branch> for BranchDocument {
    fn from(branch: &Branch) -> Self {
        Self {
            name: branch.name.to_string(),
            head: branch.head.map(|head| head.to_string()),
            active: branch.active,
            messages: branch.messages,
            // Callers of the API know items only; the store keeps each as a node.
            items: branch.nodes,
            turns: branch.turns,
            created: format_timestamp(branch.created_ms),
        }
    }
}

/// Branches of a conversation, in order of creation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchesDocument {
    /// The branches of the conversation, in order of creation.
    pub branches: Vec<BranchDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}

/// A checkpoint: a name for a node, which stays until it is set again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckpointDocument {
    /// Name of the checkpoint, unique in its conversation.
    pub name: String,
    /// Id of the node that it points to.
    pub node: String,
    /// Time at which it was last set (RFC 3339), as the writer gave it.
    pub set: String,
    /// Id of the node that it pointed to before; only in the answer to the request that moved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
}

impl From<&Checkpoint> for CheckpointDocument {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            name: checkpoint.name.to_string(),
            node: checkpoint.node.to_string(),
            set: format_timestamp(checkpoint.at_ms),
            moved_from: None,
        }
    }
}

impl From<&MovedCheckpoint> for CheckpointDocument {
    fn from(moved: &MovedCheckpoint) -> Self {
        let MovedCheckpoint {
            checkpoint,
            replaced,
        } = moved;
        // Setting it where it is already moves nothing.
        let from = replaced.filter(|from| *from != checkpoint.node);
        Self {
            moved_from: from.map(|from| from.to_string()),
            ..checkpoint.into()
        }
    }
}

/// Checkpoints of a conversation, by name.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckpointsDocument {
    /// The checkpoints of the conversation, in order of name.
    pub checkpoints: Vec<CheckpointDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}
