//! Events: what happened to a conversation.

use contexture::ir::ConversationId;
use contexture::store::{Event, EventKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::EventKindSchema;
use crate::time::format_timestamp;

/// One change of a conversation. Which of the optional fields are present depends on `kind`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EventDocument {
    /// Id of the conversation, where events of all of an owner's are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Number of the event within its conversation, from 1, without gaps.
    pub seq: u64,
    /// Time of the change (RFC 3339), as the writer gave it.
    pub at: String,
    /// Kind of the change; `other` if this version does not know it.
    #[schema(value_type = EventKindSchema)]
    pub kind: &'static str,
    /// Name of the branch that changed; its new name if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Previous name of a branch that was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Name of the checkpoint that was set or deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Id of the new head, of the node that the branch or checkpoint points to, or of the redacted node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Number of items that were appended, or of state values and blobs that were redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        // One flat shape with optional fields: clients read all kinds with one type.
        let of = |kind| Self {
            conversation: None,
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
            EventKind::BranchMoved { branch, head } => Self {
                node: head.map(|head| head.to_string()),
                ..on("branch_moved", branch)
            },
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

impl EventDocument {
    /// Names the conversation that it happened to.
    #[must_use]
    pub fn with_conversation(self, id: &ConversationId) -> Self {
        Self {
            conversation: Some(id.to_string()),
            ..self
        }
    }
}

/// A page of events after a given number, in order.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EventsDocument {
    /// The events of this page, oldest first.
    pub events: Vec<EventDocument>,
    /// Whether more events may follow; ask for them with the last `seq` as `after`.
    pub more: bool,
}
