//! Branches and checkpoints: names that point into a tree.

use contexture::store::{Branch, Checkpoint};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// A branch: a name that moves with each append.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchDocument {
    /// Its name.
    pub name: String,
    /// The node it points to; `null`: it is empty.
    pub head: Option<String>,
    /// Whether it is worked on where none is named.
    pub active: bool,
    /// Messages on its path.
    pub messages: u64,
    /// Items on its path.
    pub items: u64,
    /// Turns on its path.
    pub turns: u64,
    /// When it was made.
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

/// All branches of a conversation, in order of creation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchesDocument {
    /// The branches.
    pub branches: Vec<BranchDocument>,
}

/// A checkpoint: a name that stays.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckpointDocument {
    /// Its name.
    pub name: String,
    /// The node it points to.
    pub node: String,
    /// When it was last set.
    pub set: String,
}

impl From<&Checkpoint> for CheckpointDocument {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            name: checkpoint.name.to_string(),
            node: checkpoint.node.to_string(),
            set: format_timestamp(checkpoint.at_ms),
        }
    }
}

/// All checkpoints of a conversation, by name.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckpointsDocument {
    /// The checkpoints.
    pub checkpoints: Vec<CheckpointDocument>,
}
