//! `read_conversation`: what was said, a page at a time.

use contexture::Conversation;
use contexture::ir::ConversationId;
use contexture::store::{PathEnd, PathPage, ReadRequest, Span, read_all_pages};
use rmcp::model::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item_text::{ItemExcerpt, excerpt_items, resource_link};
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// Default and maximum number of items on a page.
const LIMIT: (u64, u64) = (20, 100);

pub(crate) struct ReadConversation;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the branch to use instead of the active one.
    branch: Option<String>,
    /// Position of the first item to read; 1 is the first. Default: so that the last items are read.
    #[schemars(range(min = 1))]
    from: Option<u64>,
    /// Id of an item or message to read around, instead of `from`.
    around: Option<String>,
    /// Maximum number of items; default 20. With fewer items, more of each is shown.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u64>,
}

/// A page of a conversation's items.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Id of the conversation.
    conversation: String,
    /// Name of the branch; absent if `around` names an item that is not on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Number of items on the path.
    total: u64,
    /// Items of this page, oldest first. Items that people may not see are left out, so positions may have gaps.
    items: Vec<ItemExcerpt>,
    /// Value of `from` for the page before this one, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<u64>,
    /// Value of `from` for the page after this one, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    later: Option<u64>,
    #[serde(skip)]
    id: Option<ConversationId>,
}

/// The items of a path that are read.
#[derive(Clone, Debug)]
pub(crate) enum ItemRange {
    /// The last items of the path.
    Last,
    /// Items from this position on; the first is 1.
    From(u64),
    /// Items around the item or message of this id.
    Around(String),
}

impl Tool for ReadConversation {
    const NAME: &'static str = "read_conversation";
    const TITLE: &'static str = "Read a conversation";
    const ABOUT: &'static str = "Reads what was said in a conversation, a page of items at a time: the last ones \
        unless `from` or `around` is given. Long items are cut and carry a link; read_link reads the whole of them.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    const IS_PAGED: bool = true;
    type Arguments = Arguments;
    type Answer = Answer;

    async fn call(context: ToolContext, arguments: Arguments) -> Result<Answer, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        let wanted = match (arguments.from, arguments.around) {
            (None, None) => ItemRange::Last,
            (Some(from), None) => ItemRange::From(from),
            (None, Some(id)) => ItemRange::Around(id),
            (Some(_), Some(_)) => {
                return Err(
                    ToolError::invalid_arguments("both `from` and `around` are given")
                        .with_hint("give one of them, or none for the last items"),
                );
            }
        };
        read_items(&context, &chat, &wanted, arguments.limit.unwrap_or(LIMIT.0)).await
    }

    fn resource_links(answer: &Answer) -> Vec<Resource> {
        let Some(id) = &answer.id else {
            return Vec::new();
        };
        answer
            .items
            .iter()
            .filter_map(|item| resource_link(item, id))
            .collect()
    }
}

/// Reads a page of at most `limit` items.
pub(crate) async fn read_items(
    context: &ToolContext,
    chat: &Conversation,
    wanted: &ItemRange,
    limit: u64,
) -> Result<Answer, ToolError> {
    let limit = limit.clamp(1, LIMIT.1);
    let here = PathEnd::Branch(chat.branch());
    let from = |first: u64| Span::Between(first, first.saturating_add(limit - 1));
    let (at, span) = match wanted {
        ItemRange::Last => (here.clone(), Span::Last(limit)),
        ItemRange::From(first) => (here.clone(), from((*first).max(1))),
        // The item may be on another branch than the handle's: then that path is read.
        ItemRange::Around(id) => {
            let place = context.locate_item(chat, id).await?;
            let first = place.position.saturating_sub(limit / 2).max(1);
            (place.at, from(first))
        }
    };
    let request = ReadRequest {
        at: at.clone(),
        span,
        limit: None,
    };
    let store = &**context.engine.store();
    let page = read_all_pages(store, chat.owner(), chat.id(), request).await?;
    build_page(
        chat,
        // No branch is named where the path that was read is not one.
        (at == here).then(|| chat.branch().to_string()),
        &page,
        limit,
    )
}

fn build_page(
    chat: &Conversation,
    branch: Option<String>,
    page: &PathPage,
    limit: u64,
) -> Result<Answer, ToolError> {
    let first = page.nodes.first().map_or(1, |node| node.depth);
    // An empty page ends the reading: there is nothing later.
    let last = page.nodes.last().map_or(page.depth, |node| node.depth);
    Ok(Answer {
        conversation: chat.id().to_string(),
        branch,
        total: page.depth,
        items: excerpt_items(&page.nodes)?,
        earlier: (first > 1).then(|| first.saturating_sub(limit).max(1)),
        later: (last < page.depth).then(|| last.saturating_add(1)),
        // For the links beside the answer; it is not part of the JSON.
        id: Some(chat.id().clone()),
    })
}

impl Answer {
    /// Formats the page as text, for a resource.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(earlier) = self.earlier {
            let shown = self.items.first().map_or(self.total, |item| item.position);
            text.push_str(&format!(
                "[items before {shown} of {} are not shown: read_conversation with conversation {:?} and from {earlier}]\n\n",
                self.total, self.conversation
            ));
        }
        for item in &self.items {
            text.push_str(&format!(
                "[{} {} {}]\n{}\n",
                item.position,
                item.kind.as_str(),
                item.at,
                item.text
            ));
            if let (Some(link), Some(characters)) = (&item.link, item.characters) {
                text.push_str(&format!(
                    "[{characters} characters in all: read_link {link}]\n"
                ));
            }
            text.push('\n');
        }
        text
    }
}
