//! Conversations: their metadata, without their trees.

use std::collections::BTreeMap;

use contexture::ir::Raw;
use contexture::store::Conversation;
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// A conversation, without its tree.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationDocument {
    /// Its id, unique within the owner.
    pub id: String,
    /// What people call it.
    pub title: Option<String>,
    /// The subject, an end user say.
    pub resource: Option<String>,
    /// The caller's own data.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub metadata: BTreeMap<String, Raw>,
    /// The branch that is worked on where none is named.
    pub active: String,
    /// Counts changes of title and metadata, from 1.
    pub version: u64,
    /// Messages of the active branch.
    pub messages: u64,
    /// Items of the whole tree.
    pub items: u64,
    /// Branches.
    pub branches: u64,
    /// The number of its last event.
    pub events: u64,
    /// When it was made.
    pub created: String,
    /// When it was last written to.
    pub updated: String,
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
        }
    }
}

/// A page of conversations, most recently updated first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationsDocument {
    /// The conversations.
    pub conversations: Vec<ConversationDocument>,
    /// Whether there are more.
    pub more: bool,
    /// The `after` of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
