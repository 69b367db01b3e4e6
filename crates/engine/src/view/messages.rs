//! The messages of a path.
//!
//! Each page is folded while the store reads the next. Not here: what a message is (`contexture-wire`), what stands before
//! the messages.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use contexture_ir::{Audience, Item, MessageId, NodeId, ResponseId, UiMessage};
use contexture_store::{Node, PathEnd, ReadRequest};
use contexture_wire::ui::{FoldAudience, FoldItem, FoldOptions, Folder};

use crate::error::EngineError;
use crate::handle::Conversation;
use crate::path::{PathPages, message_id_of, page_count, parse_node_item};

/// The reader that a view is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageView {
    /// A model: what the host added for it is there, what only people see is not.
    Model,
    /// A person who reads the conversation.
    User,
}

/// The messages of this branch, and where its path ended.
pub(crate) async fn fold_messages(
    chat: &Conversation,
    audience: MessageView,
) -> Result<(PathEnd, Vec<UiMessage>), EngineError> {
    let options = FoldOptions {
        audience: match audience {
            MessageView::Model => FoldAudience::Model,
            MessageView::User => FoldAudience::User,
        },
        ..FoldOptions::default()
    };
    let mut at = chat.current_position();
    let mut pages = PathPages::new(
        chat.store(),
        chat.owner(),
        chat.id(),
        ReadRequest::whole_path(at.clone()),
    );
    // The first page names the head; all later pages are of the path to that node.
    let Some(first) = pages.next().await? else {
        return Ok((at, Vec::new()));
    };
    // The folder borrows from pages that are there while later ones are not.
    let mut cells: Vec<OnceLock<Vec<FoldEntry>>> = Vec::new();
    cells.resize_with(page_count(first.depth).max(1), OnceLock::new);
    at = first.head.map_or(at, PathEnd::Node);
    let mut calls: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut count = 0;
    let mut folder = Folder::new(options);
    let mut page = Some(first);
    for cell in &cells {
        let Some(read) = page else { break };
        let entries = read.nodes.iter().map(|node| FoldEntry::from_node(node));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        drop(read);
        for entry in cell.get_or_init(|| entries) {
            if matches!(entry.item, Item::FunctionCall(_)) {
                calls.insert(entry.node, count);
            }
            count += 1;
            folder.push(&FoldItem {
                item: &entry.item,
                message_id: Some(entry.message.as_str()),
                response: entry.response,
                answers: entry.answers.and_then(|call| calls.get(&call).copied()),
                audience: entry.audience,
            });
        }
        page = pages.next().await?;
    }
    Ok((at, folder.finish()))
}

/// What folding needs of a node.
struct FoldEntry {
    node: NodeId,
    item: Item,
    message: MessageId,
    response: Option<ResponseId>,
    answers: Option<NodeId>,
    audience: Audience,
}

impl FoldEntry {
    fn from_node(node: &Node) -> Result<Self, EngineError> {
        Ok(Self {
            node: node.id,
            item: parse_node_item(node)?,
            message: message_id_of(node)?,
            response: node.response,
            answers: node.answers,
            audience: node.audience,
        })
    }
}
