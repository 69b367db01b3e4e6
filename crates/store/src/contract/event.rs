//! Events: what happened to a conversation, in order.

use contexture_ir::{BranchName, CheckpointName, NodeId};

use crate::contract::Fence;

/// One change, recorded in the transaction that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number within the conversation: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// The time given by the writer, milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The conversation was made.
    Created,
    /// Title or metadata changed.
    Updated,
    /// Items were appended.
    Appended {
        /// To this branch.
        branch: BranchName,
        /// Its head now.
        head: NodeId,
        /// How many.
        count: u64,
    },
    /// A branch was made.
    BranchCreated {
        /// The branch.
        branch: BranchName,
        /// Where it starts.
        base: Option<NodeId>,
    },
    /// A branch became the active one.
    BranchActivated {
        /// The branch.
        branch: BranchName,
    },
    /// A branch got another name.
    BranchRenamed {
        /// The name it had.
        from: BranchName,
        /// The name it has now.
        to: BranchName,
    },
    /// A branch's name was deleted.
    BranchDeleted {
        /// The branch.
        branch: BranchName,
    },
    /// A branch was claimed by a writer.
    BranchClaimed {
        /// The branch.
        branch: BranchName,
        /// The new fence.
        fence: Fence,
    },
    /// A checkpoint was made or moved.
    CheckpointSet {
        /// The checkpoint.
        checkpoint: CheckpointName,
        /// Where it points.
        node: NodeId,
    },
    /// A checkpoint was deleted.
    CheckpointDeleted {
        /// The checkpoint.
        checkpoint: CheckpointName,
    },
    /// A node's content was replaced by its tombstone.
    NodeRedacted {
        /// The node.
        node: NodeId,
    },
    /// State values or blobs were removed by a redaction.
    BytesRedacted {
        /// How many.
        count: u64,
    },
}
