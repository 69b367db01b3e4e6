//! Resources: conversations as text, and what their links name.

use contexture::compile::reading::{TextPosition, extract_excerpt};
use contexture::engine::MessageView;
use contexture::store::{Conversation, ListConversations};
use contexture_api::operations::encode_conversation_cursor;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};

use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;
use crate::tools::{self, ItemRange};
use crate::uri::{self, ResourceUri, ScopedLink, TEMPLATES};

/// Resources of a page.
const PAGE: usize = 100;
/// Items of a conversation that are shown.
const SHOWN_ITEMS: u64 = 100;
/// Characters of a text that are shown.
const MAX_CHARACTERS: usize = 100_000;
const TEXT: &str = "text/plain";

/// The conversations, the one that changed last first.
pub(crate) async fn list_resources(
    context: &ToolContext,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let list = ListConversations {
        limit: Some(PAGE),
        ..ListConversations::default()
    };
    let page = tools::conversations(context, list, cursor).await;
    // Resources have no answer that says an error, as tools have: it becomes an error of the
    // protocol.
    let page = page.map_err(|error| ErrorData::invalid_params(error.full_message(), None))?;
    let resources = page
        .conversations
        .into_iter()
        .map(conversation_resource)
        .collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = page.next.as_ref().map(encode_conversation_cursor);
    Ok(result)
}

/// What names may be made of.
pub(crate) fn resource_templates() -> ListResourceTemplatesResult {
    let [conversation, item] = TEMPLATES;
    let conversation = ResourceTemplate::new(conversation, "conversation")
        .with_title("A conversation")
        .with_description("The last items of a conversation's active branch, as text")
        .with_mime_type(TEXT);
    let item = ResourceTemplate::new(item, "item")
        .with_title("What a link names")
        .with_description("A tool output or message of a conversation, by the hash in its link")
        .with_mime_type(TEXT);
    ListResourceTemplatesResult::with_all_items(vec![conversation, item])
}

/// Reads a resource.
pub(crate) async fn read_resource(
    context: &ToolContext,
    name: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let text = match ResourceUri::parse(name) {
        Ok(ResourceUri::Conversation(id)) => read_conversation(context, id.as_str()).await,
        Ok(ResourceUri::Link(within)) => read_linked_item(context, &within).await,
        Err(error) => Err(error),
    };
    match text {
        Ok(text) => {
            let contents = ResourceContents::text(text, name).with_mime_type(TEXT);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        // The protocol has a code of its own for this. A resource of another owner gives the same,
        // so nobody learns that it exists.
        Err(error) if error.is_not_found() => {
            let shown: String = name.chars().take(200).collect();
            // The protocol names the resource in `data`. The name is cut because it comes from
            // outside.
            let data = serde_json::json!({ "uri": shown });
            Err(ErrorData::resource_not_found(
                error.full_message(),
                Some(data),
            ))
        }
        Err(error) => Err(ErrorData::internal_error(error.full_message(), None)),
    }
}

async fn read_conversation(context: &ToolContext, id: &str) -> Result<String, ToolError> {
    let chat = context.open_conversation(id, None).await?;
    let page = tools::transcript(context, &chat, &ItemRange::Last, SHOWN_ITEMS).await?;
    Ok(page.to_text())
}

async fn read_linked_item(context: &ToolContext, within: &ScopedLink) -> Result<String, ToolError> {
    // A link alone is a hash of content. Looking it up everywhere would mean reading all
    // conversations of the owner.
    let Some(id) = &within.conversation else {
        let message = format!("{} does not say in which conversation", within.link);
        return Err(ToolError::new("not_found", message)
            .with_hint("put ?conversation= and the id behind it, or use the tool read_link"));
    };
    let chat = context.open_conversation(id.as_str(), None).await?;
    let linked = chat.resolve_link(within.link, MessageView::User).await?;
    let part = extract_excerpt(
        &linked.text,
        TextPosition::line_start(1),
        u64::MAX,
        MAX_CHARACTERS,
    );
    let mut text = part.text.to_owned();
    // A resource has no pages. Its end says which tool reads on, and from where.
    if let Some(next) = part.next {
        let said = format!(
            "\n[{} characters in all: read_link with conversation {:?} and from {}{}]\n",
            part.characters,
            id.as_str(),
            next.line,
            match next.column {
                // Cut between lines: the line alone says it.
                0 => String::new(),
                column => format!(", column {column}"),
            }
        );
        text.push_str(&said);
    }
    Ok(text)
}

fn conversation_resource(conversation: Conversation) -> Resource {
    let uri = uri::conversation_uri(&conversation.id);
    let about = match &conversation.resource {
        Some(resource) => format!("{} messages, about {resource}", conversation.messages),
        None => format!("{} messages", conversation.messages),
    };
    let resource = Resource::new(uri, conversation.id.as_str());
    let resource = resource.with_description(about).with_mime_type(TEXT);
    match conversation.title {
        Some(title) => resource.with_title(title),
        None => resource,
    }
}
