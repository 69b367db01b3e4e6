//! `list_conversations`.

use contexture::store::{Conversation, ConversationPage, ListConversations as List};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;
use crate::uri;
use contexture_api::format_timestamp;
use contexture_api::operations::{encode_conversation_cursor, parse_conversation_cursor};

/// Default and maximum number of conversations on a page.
const LIMIT: (usize, usize) = (20, 100);

pub(crate) struct ListConversations;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Only conversations about this resource: an end user, a ticket, a project.
    resource: Option<String>,
    /// Only conversations whose title has this text, in any case.
    title: Option<String>,
    /// Maximum number of conversations; default 20.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// Value of `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Conversations of this page, most recently changed first.
    conversations: Vec<ConversationInfo>,
    /// Cursor of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Whether the page is full or the list has ended. If false, the page stopped early because most conversations it looked at do
    /// not match: continue with `next_cursor`.
    complete: bool,
}

#[derive(Serialize, JsonSchema)]
struct ConversationInfo {
    /// Id of the conversation.
    id: String,
    /// Title of the conversation, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Subject of the conversation: an end user, a ticket, a project.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    /// Name of the active branch.
    branch: String,
    /// Number of branches in the conversation.
    branches: u64,
    /// Number of messages on the active branch.
    messages: u64,
    /// Time of its creation (RFC 3339).
    created: String,
    /// Time of its last change (RFC 3339).
    updated: String,
    /// URI of the resource that has its text.
    uri: String,
}

impl Tool for ListConversations {
    const NAME: &'static str = "list_conversations";
    const TITLE: &'static str = "List conversations";
    const ABOUT: &'static str = "Lists the conversations that are kept, the one that changed last first. \
        Use it to find the id that the other tools ask for; to find what was said, use search_conversations.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    const IS_PAGED: bool = true;
    type Arguments = Arguments;
    type Answer = Answer;

    async fn call(context: ToolContext, arguments: Arguments) -> Result<Answer, ToolError> {
        let list = List {
            resource: arguments.resource,
            title: arguments.title,
            // Clients need not check the bounds of the schema.
            limit: Some(arguments.limit.unwrap_or(LIMIT.0).clamp(1, LIMIT.1)),
            ..List::default()
        };
        let page = load_conversation_page(&context, list, arguments.cursor.as_deref()).await?;
        Ok(Answer {
            next_cursor: page.next.as_ref().map(encode_conversation_cursor),
            complete: page.complete,
            conversations: page
                .conversations
                .into_iter()
                .map(conversation_info)
                .collect(),
        })
    }
}

/// Loads a page of the owner's conversations.
pub(crate) async fn load_conversation_page(
    context: &ToolContext,
    mut list: List,
    cursor: Option<&str>,
) -> Result<ConversationPage, ToolError> {
    // Before the store is asked: what breaks the form never reaches it.
    let parse =
        |text: &str| parse_conversation_cursor(text).ok_or_else(|| ToolError::invalid_cursor(text));
    list.after = cursor.map(parse).transpose()?;
    Ok(context
        .engine
        .list_conversations(&context.owner, list)
        .await?)
}

fn conversation_info(conversation: Conversation) -> ConversationInfo {
    ConversationInfo {
        uri: uri::conversation_uri(&conversation.id),
        id: conversation.id.to_string(),
        title: conversation.title,
        resource: conversation.resource,
        branch: conversation.active.to_string(),
        branches: conversation.branches,
        messages: conversation.messages,
        created: format_timestamp(conversation.created_ms),
        updated: format_timestamp(conversation.updated_ms),
    }
}
