//! Events: what happened to a conversation, in order.

use contexture_ir::{BranchName, CheckpointName, NodeId};

use crate::contract::Fence;

/// Change of a conversation, recorded in the transaction that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the event within the conversation: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// Time of the event in milliseconds since the Unix epoch, as given by the writer.
    pub at_ms: i64,
    /// Kind and details of the change.
    pub kind: EventKind,
}

/// Kind and details of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The conversation was made.
    Created,
    /// Title or metadata changed.
    Updated,
    /// Items were appended.
    Appended {
        /// Branch that the items are on.
        branch: BranchName,
        /// Head of the branch after the append.
        head: NodeId,
        /// Number of appended items.
        count: u64,
    },
    /// A branch was made.
    BranchCreated {
        /// Name of the new branch.
        branch: BranchName,
        /// Node that the branch starts at; `None` if it starts empty.
        base: Option<NodeId>,
    },
    /// A branch became the active one.
    BranchActivated {
        /// Name of the branch.
        branch: BranchName,
    },
    /// A branch got another name.
    BranchRenamed {
        /// Name before the change.
        from: BranchName,
        /// Name after the change.
        to: BranchName,
    },
    /// A branch's name was deleted.
    BranchDeleted {
        /// Name of the deleted branch.
        branch: BranchName,
    },
    /// A branch was moved to another node, without an append.
    BranchMoved {
        /// Name of the branch.
        branch: BranchName,
        /// New head of the branch; `None` if it is empty now.
        head: Option<NodeId>,
    },
    /// A branch was claimed by a writer.
    BranchClaimed {
        /// Name of the claimed branch.
        branch: BranchName,
        /// Fence of the new writer.
        fence: Fence,
    },
    /// A checkpoint was made or moved.
    CheckpointSet {
        /// Name of the checkpoint.
        checkpoint: CheckpointName,
        /// Node that the checkpoint points to.
        node: NodeId,
    },
    /// A checkpoint was deleted.
    CheckpointDeleted {
        /// Name of the deleted checkpoint.
        checkpoint: CheckpointName,
    },
    /// A node's content was replaced by its tombstone.
    NodeRedacted {
        /// Id of the redacted node.
        node: NodeId,
    },
    /// State values or blobs were removed by a redaction.
    BytesRedacted {
        /// Number of removed state values and blobs.
        count: u64,
    },
}
