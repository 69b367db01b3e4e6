//! Conversations: their metadata, without their trees.

use std::collections::BTreeMap;

use contexture::engine::ConversationOverview;
use contexture::ir::Raw;
use contexture::store::Conversation;
use serde::Serialize;
use utoipa::ToSchema;

use crate::documents::UsageSumDocument;
use crate::time::format_timestamp;

/// A conversation, without its tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationDocument {
    /// Id of the conversation, unique within its owner.
    pub id: String,
    /// Title for people; `null` if it has none.
    pub title: Option<String>,
    /// Subject of the conversation, such as an end user; `null` if none was named.
    pub resource: Option<String>,
    /// Values that the caller attached, by key.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub metadata: BTreeMap<String, Raw>,
    /// Name of the active branch, which is used where none is named.
    pub active: String,
    /// Version of title and metadata: 1 at first, one more with each change.
    pub version: u64,
    /// Number of messages on the active branch.
    pub messages: u64,
    /// Number of items in the entire tree.
    pub items: u64,
    /// Number of branches in the conversation.
    pub branches: u64,
    /// Sequence number of its last event.
    pub events: u64,
    /// Time of its creation (RFC 3339), as the writer gave it.
    pub created: String,
    /// Time of the latest write (RFC 3339), as the writer gave it.
    pub updated: String,
    /// How it begins, and what its calls used and cost. Absent in lists that do not include it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<ConversationOverviewDocument>,
}

/// How a conversation begins, and what its calls of models used and cost.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationOverviewDocument {
    /// Beginning of the first message of a person, one line of at most 80 characters; `null` if there is none.
    pub preview: Option<String>,
    /// Model of the newest call; `null` without calls.
    pub last_model: Option<String>,
    /// The sum of all its calls.
    pub usage: UsageSumDocument,
}

impl From<&ConversationOverview> for ConversationOverviewDocument {
    fn from(overview: &ConversationOverview) -> Self {
        Self {
            preview: overview.preview.clone(),
            last_model: overview.calls.last_model.clone(),
            usage: (&overview.calls.sum).into(),
        }
    }
}

impl ConversationDocument {
    /// Adds an overview.
    #[must_use]
    pub fn with_overview(self, overview: &ConversationOverview) -> Self {
        Self {
            overview: Some(overview.into()),
            ..self
        }
    }
}

impl From<&Conversation> for ConversationDocument {
    fn from(conversation: &Conversation) -> Self {
        Self {
            id: conversation.id.to_string(),
            title: conversation.title.clone(),
            resource: conversation.resource.clone(),
            metadata: conversation.metadata.clone(),
            active: conversation.active.to_string(),
            version: conversation.version,
            messages: conversation.messages,
            // Callers of the API know items only; the store keeps each as a node.
            items: conversation.nodes,
            branches: conversation.branches,
            events: conversation.events,
            created: format_timestamp(conversation.created_ms),
            updated: format_timestamp(conversation.updated_ms),
            overview: None,
        }
    }
}

/// A page of conversations, most recently updated first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationsDocument {
    /// The conversations of this page, most recently updated first.
    pub conversations: Vec<ConversationDocument>,
    /// Whether another page follows.
    pub more: bool,
    /// Whether the page is full or the list has ended. `false` if it ended after 10,000 conversations most of which the conditions
    /// leave out: `next` goes on from there.
    pub complete: bool,
    /// Value of `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
