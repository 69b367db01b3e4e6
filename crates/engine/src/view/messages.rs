//! The messages of a path.
//!
//! Each page is folded while the store reads the next. Not here: what a message is (`contexture-wire`), what stands before
//! the messages.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use contexture_compile::PathItem;
use contexture_ir::{Audience, Item, MessageId, NodeId, Origin, ResponseId, UiMessage};
use contexture_store::{NewItem, Node, PathEnd, PathPage, PathPages, ReadRequest};
use contexture_wire::ui::{FoldAudience, FoldItem, FoldOptions, Folder, UnknownFields};

use crate::error::EngineError;
use crate::handle::Conversation;
use crate::path::{message_id_of, parse_node_item};

/// The reader that a view is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageView {
    /// A model: what the host added for it is there, what only people see is not.
    Model,
    /// A person who reads the conversation.
    User,
}

/// The messages of the path to `at`, and where it ended, continued by nodes that are not stored. Without a place there are
/// only those.
pub(crate) async fn fold_messages(
    chat: &Conversation,
    audience: MessageView,
    unknown_fields: UnknownFields,
    at: Option<PathEnd>,
    pending: &[FoldNode],
) -> Result<(Option<PathEnd>, Vec<UiMessage>), EngineError> {
    let mut folding = Folding::new(audience, unknown_fields);
    let Some(at) = at else {
        pending.iter().for_each(|node| folding.push(node));
        return Ok((None, folding.folder.finish()));
    };
    let request = ReadRequest::whole_path(at.clone());
    let mut pages = PathPages::new(chat.store(), chat.owner(), chat.id(), request);
    // The first page names the head; all later pages are of the path to that node.
    let mut page = pages.next().await?;
    let (head, depth) = page
        .as_ref()
        .map_or((None, 0), |page| (page.head, page.depth));
    // The folder borrows from pages that are there while later ones are not.
    let mut cells: Vec<OnceLock<Vec<FoldNode>>> = Vec::new();
    let cell_count = usize::try_from(depth)
        .unwrap_or(usize::MAX)
        .div_ceil(PathPages::NODES);
    cells.resize_with(cell_count.max(1), OnceLock::new);
    for cell in &cells {
        let Some(read) = page else { break };
        let mut nodes = parse_page(&read)?;
        // Parsed, it is held twice.
        drop(read);
        // Pages that end for their bytes have fewer nodes: together they fill one cell, so the cells suffice.
        while nodes.len() < PathPages::NODES
            && let Some(read) = pages.next().await?
        {
            nodes.extend(parse_page(&read)?);
        }
        for node in cell.get_or_init(|| nodes) {
            folding.push(node);
        }
        page = pages.next().await?;
    }
    pending.iter().for_each(|node| folding.push(node));
    let at = head.map_or(at, PathEnd::Node);
    Ok((Some(at), folding.folder.finish()))
}

pub(super) fn parse_page(page: &PathPage) -> Result<Vec<FoldNode>, EngineError> {
    page.nodes
        .iter()
        .map(|node| FoldNode::from_node(node))
        .collect()
}

/// The messages of these nodes.
pub(super) fn fold_nodes(
    audience: MessageView,
    unknown_fields: UnknownFields,
    nodes: &[FoldNode],
) -> Vec<UiMessage> {
    let mut folding = Folding::new(audience, unknown_fields);
    nodes.iter().for_each(|node| folding.push(node));
    folding.folder.finish()
}

/// A path while it is folded.
struct Folding<'a> {
    folder: Folder<'a, 'static>,
    /// Index of each call among the nodes, for the outputs that answer it.
    calls: BTreeMap<NodeId, usize>,
    count: usize,
}

impl<'a> Folding<'a> {
    fn new(audience: MessageView, unknown_fields: UnknownFields) -> Self {
        let options = FoldOptions {
            audience: match audience {
                MessageView::Model => FoldAudience::Model,
                MessageView::User => FoldAudience::User,
            },
            unknown_fields,
            ..FoldOptions::default()
        };
        Self {
            folder: Folder::new(options),
            calls: BTreeMap::new(),
            count: 0,
        }
    }

    fn push(&mut self, node: &'a FoldNode) {
        if matches!(node.item, Item::FunctionCall(_)) {
            self.calls.insert(node.node, self.count);
        }
        self.count += 1;
        let call = node.answers.and_then(|call| self.calls.get(&call).copied());
        self.folder.push(&FoldItem {
            item: &node.item,
            message_id: Some(node.message.as_str()),
            response: node.response,
            answers: call,
            audience: node.audience,
        });
    }
}

/// What folding needs of a node.
pub(crate) struct FoldNode {
    node: NodeId,
    item: Item,
    message: MessageId,
    response: Option<ResponseId>,
    answers: Option<NodeId>,
    audience: Audience,
    origin: Origin,
}

impl FoldNode {
    /// Whether it is of the message with this id.
    pub(super) fn is_of_message(&self, id: &str) -> bool {
        self.message.as_str() == id
    }

    pub(super) fn from_node(node: &Node) -> Result<Self, EngineError> {
        Ok(Self {
            node: node.id,
            item: parse_node_item(node)?,
            message: message_id_of(node)?,
            response: node.response,
            answers: node.answers,
            audience: node.audience,
            origin: node.origin,
        })
    }

    /// What folding will need of a node that is not stored yet.
    pub(crate) fn from_new(new: &NewItem, item: &Item) -> Result<Self, EngineError> {
        let message = match &new.message_id {
            Some(id) => id.clone(),
            None => MessageId::new(new.id.to_string())?,
        };
        Ok(Self {
            node: new.id,
            item: item.clone(),
            message,
            response: new.response,
            answers: new.answers,
            audience: new.audience,
            origin: new.origin,
        })
    }

    /// The node as a call sees it.
    pub(crate) fn to_path_item(&self) -> PathItem {
        PathItem {
            node: Some(self.node),
            audience: self.audience,
            origin: self.origin,
            ..PathItem::new(self.item.clone())
        }
    }
}
