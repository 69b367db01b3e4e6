//! Items that a payload left out, read again by link, and the tool by which a model does that.
//!
//! The tree keeps every original, so a link is looked up among the items of the branch's path, by the hash of their bytes;
//! nothing is read from anywhere else. What is on another branch, in another conversation, another owner's or not meant
//! for the reader is not found.
//!
//! Not here: how texts are cut, and the tool's definition (`contexture_compile::reading`); finding items by words
//! (`path_search`); copies of outputs outside the database (`contexture-offload`).

use std::sync::Arc;

use contexture_compile::Link;
use contexture_compile::reading::{
    ReadCall, ReadReply, excerpt_reply, extract_excerpt, find_lines, matches_reply, search_reply,
};
use contexture_ir::{ContentHash, Item};
use contexture_store::{Error as StoreError, Node};

use super::messages::MessageView;
use super::path_search::search_path;
use crate::error::EngineError;
use crate::handle::{Conversation, EngineEventKind, read_full_path};
use crate::path::parse_node_item;

/// The item that a link points to.
#[derive(Clone, Debug)]
pub struct LinkTarget {
    /// Node that holds the item.
    pub node: Arc<Node>,
    /// The item of that node.
    pub item: Item,
    /// The item's texts, joined by line feeds: what excerpts and searches go by.
    pub text: String,
}

/// Resolves a link to the newest item with its hash on this branch's path.
pub(crate) async fn resolve_link(
    chat: &Conversation,
    link: Link,
    reader: MessageView,
) -> Result<LinkTarget, EngineError> {
    match newest_with_hash(chat, link.hash()).await? {
        Some(node) => open_link(chat, link, &node, reader),
        None => Err(EngineError::NoLink { link }),
    }
}

/// The newest node on this branch's path with this hash.
async fn newest_with_hash(
    chat: &Conversation,
    hash: ContentHash,
) -> Result<Option<Arc<Node>>, EngineError> {
    let path = read_full_path(chat, chat.current_position()).await?;
    let mut nodes = path.nodes.iter().rev();
    Ok(nodes.find(|node| node.content_hash == hash).cloned())
}

fn open_link(
    chat: &Conversation,
    link: Link,
    node: &Arc<Node>,
    reader: MessageView,
) -> Result<LinkTarget, EngineError> {
    // The same error as for an unknown link, so that a reader learns nothing of what it may not see.
    if !is_visible_to(node, reader) {
        return Err(EngineError::NoLink { link });
    }
    if node.redacted_ms.is_some() {
        return Err(EngineError::Evicted { link });
    }
    // The hash is the promise of the link: a damaged item must not be shown as the original.
    if ContentHash::of(node.json.as_bytes()) != link.hash() {
        return Err(EngineError::Store(StoreError::Damaged {
            conversation: chat.id().clone(),
            what: "item",
            position: node.depth.to_string(),
            why: "its bytes do not have its hash".to_owned(),
        }));
    }
    let item = parse_node_item(node)?;
    Ok(LinkTarget {
        text: item.text(),
        node: Arc::clone(node),
        item,
    })
}

/// Answers a call of the built-in tool ([`contexture_compile::read_tool`]). What the model did wrong, or asked for in vain,
/// is an answer too, with `is_error`.
#[tracing::instrument(
    name = "contexture.read_context",
    skip_all,
    fields(gen_ai.conversation.id = chat.id().as_str())
)]
pub(crate) async fn read_context(
    chat: &Conversation,
    arguments: &str,
) -> Result<ReadReply, EngineError> {
    let call = match ReadCall::parse(arguments) {
        Ok(call) => call,
        Err(error) => return Ok(ReadReply::from_error(error)),
    };
    let answer = execute_read_call(chat, call).await;
    chat.publish(|| EngineEventKind::ContextRead);
    match answer {
        // A wrong link is the mistake of the model: it is told and can try again, and the run goes on.
        Err(error @ (EngineError::NoLink { .. } | EngineError::Evicted { .. })) => {
            Ok(ReadReply::from_error(error))
        }
        other => other,
    }
}

async fn execute_read_call(chat: &Conversation, call: ReadCall) -> Result<ReadReply, EngineError> {
    Ok(match call {
        ReadCall::Read {
            link,
            from,
            lines,
            characters,
        } => {
            let text = resolve_link(chat, link, MessageView::Model).await?.text;
            excerpt_reply(link, &extract_excerpt(&text, from, lines, characters))
        }
        ReadCall::Find {
            link,
            matcher,
            which,
        } => {
            let text = resolve_link(chat, link, MessageView::Model).await?.text;
            matches_reply(link, &find_lines(&text, &matcher, &which))
        }
        ReadCall::Search { query, limit } => {
            let kept = search_path(chat, &query, limit, MessageView::Model).await?;
            search_reply(&kept)
        }
    })
}

pub(super) fn is_visible_to(node: &Node, reader: MessageView) -> bool {
    match reader {
        MessageView::Model => node.audience.model,
        MessageView::User => node.audience.user,
    }
}
