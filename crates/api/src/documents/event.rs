//! Events: what happened to a conversation.

use contexture::store::{Event, EventKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// One change. Which of the optional fields there are follows from `kind`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EventDocument {
    /// Its number within the conversation, from 1, without gaps.
    pub seq: u64,
    /// When, as the writer said.
    pub at: String,
    /// `created`, `updated`, `appended`, `branch_created`, `branch_activated`, `branch_renamed`, `branch_deleted`,
    /// `branch_claimed`, `checkpoint_set`, `checkpoint_deleted`, `node_redacted`, `bytes_redacted`.
    pub kind: &'static str,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The name the branch had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The node: the new head, where the branch or checkpoint points, what was redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        // One flat shape with optional fields: clients read all kinds with one type.
        let of = |kind| Self {
            seq: event.seq,
            at: format_timestamp(event.at_ms),
            kind,
            branch: None,
            from: None,
            checkpoint: None,
            node: None,
            count: None,
        };
        let on = |kind, branch: &dyn ToString| Self {
            branch: Some(branch.to_string()),
            ..of(kind)
        };
        match &event.kind {
            EventKind::Created => of("created"),
            EventKind::Updated => of("updated"),
            EventKind::Appended {
                branch,
                head,
                count,
            } => Self {
                node: Some(head.to_string()),
                count: Some(*count),
                ..on("appended", branch)
            },
            EventKind::BranchCreated { branch, base } => Self {
                node: base.map(|base| base.to_string()),
                ..on("branch_created", branch)
            },
            EventKind::BranchActivated { branch } => on("branch_activated", branch),
            // `branch` has the new name: it is the one that a reader can ask for now.
            EventKind::BranchRenamed { from, to } => Self {
                from: Some(from.to_string()),
                ..on("branch_renamed", to)
            },
            EventKind::BranchDeleted { branch } => on("branch_deleted", branch),
            // The fence is left out: it orders writers of the store and means nothing to readers.
            EventKind::BranchClaimed { branch, .. } => on("branch_claimed", branch),
            EventKind::CheckpointSet { checkpoint, node } => Self {
                checkpoint: Some(checkpoint.to_string()),
                node: Some(node.to_string()),
                ..of("checkpoint_set")
            },
            EventKind::CheckpointDeleted { checkpoint } => Self {
                checkpoint: Some(checkpoint.to_string()),
                ..of("checkpoint_deleted")
            },
            EventKind::NodeRedacted { node } => Self {
                node: Some(node.to_string()),
                ..of("node_redacted")
            },
            EventKind::BytesRedacted { count } => Self {
                count: Some(*count),
                ..of("bytes_redacted")
            },
            // Stores may add kinds before this crate knows them: readers see that something happened.
            _ => of("other"),
        }
    }
}

/// Events behind a number, in order.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EventsDocument {
    /// The events.
    pub events: Vec<EventDocument>,
    /// Whether there may be more: ask again with `after` the last one's number.
    pub more: bool,
}
