//! Resources: conversations as text, and what their links name.

use contexture::compile::reading::{Position, excerpt};
use contexture::engine::For;
use contexture::store::{Conversation, ListConversations};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};

use crate::cursor;
use crate::tools::{self, Wanted};
use crate::trouble::Trouble;
use crate::uri::{self, Named, TEMPLATES, Within};
use crate::visit::Visit;

/// Resources of a page.
const PAGE: usize = 100;
/// Items of a conversation that are shown.
const ITEMS: u64 = 100;
/// Characters of a text that are shown.
const CHARACTERS: usize = 100_000;
const TEXT: &str = "text/plain";

/// The conversations, the one that changed last first.
pub(crate) async fn list(
    visit: &Visit,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let list = ListConversations {
        limit: Some(PAGE),
        ..ListConversations::default()
    };
    let page = tools::conversations(visit, list, cursor).await;
    let page = page.map_err(|trouble| ErrorData::invalid_params(trouble.text(), None))?;
    let resources = page.conversations.into_iter().map(resource).collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = page.next.as_ref().map(cursor::after_conversation);
    Ok(result)
}

/// What names may be made of.
pub(crate) fn templates() -> ListResourceTemplatesResult {
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
pub(crate) async fn read(visit: &Visit, name: &str) -> Result<ReadResourceResult, ErrorData> {
    let text = match Named::parse(name) {
        Ok(Named::Conversation(id)) => conversation(visit, id.as_str()).await,
        Ok(Named::Item(within)) => item(visit, &within).await,
        Err(trouble) => Err(trouble),
    };
    match text {
        Ok(text) => {
            let contents = ResourceContents::text(text, name).with_mime_type(TEXT);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        Err(trouble) if trouble.is_absent() => {
            let shown: String = name.chars().take(200).collect();
            let data = serde_json::json!({ "uri": shown });
            Err(ErrorData::resource_not_found(trouble.text(), Some(data)))
        }
        Err(trouble) => Err(ErrorData::internal_error(trouble.text(), None)),
    }
}

async fn conversation(visit: &Visit, id: &str) -> Result<String, Trouble> {
    let chat = visit.conversation(id, None).await?;
    let page = tools::transcript(visit, &chat, &Wanted::Last, ITEMS).await?;
    Ok(page.text())
}

async fn item(visit: &Visit, within: &Within) -> Result<String, Trouble> {
    let Some(id) = &within.conversation else {
        let message = format!("{} does not say in which conversation", within.link);
        return Err(Trouble::new("not_found", message)
            .hint("put ?conversation= and the id behind it, or use the tool read_link"));
    };
    let chat = visit.conversation(id.as_str(), None).await?;
    let linked = chat.linked(within.link, For::User).await?;
    let part = excerpt(&linked.text, Position::line(1), u64::MAX, CHARACTERS);
    let mut text = part.text.to_owned();
    if let Some(next) = part.next {
        let said = format!(
            "\n[{} characters in all: read_link with conversation {:?} and from {}{}]\n",
            part.characters,
            id.as_str(),
            next.line,
            match next.column {
                0 => String::new(),
                column => format!(", column {column}"),
            }
        );
        text.push_str(&said);
    }
    Ok(text)
}

fn resource(conversation: Conversation) -> Resource {
    let uri = uri::of_conversation(&conversation.id);
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
