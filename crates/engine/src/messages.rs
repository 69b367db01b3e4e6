//! The messages of a path.
//!
//! Each page is folded while the store reads the next. Not here: what a message is (`wire`), what
//! stands before the messages.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use contexture_ir::{Audience, Item, MessageId, NodeId, ResponseId, UiMessage};
use contexture_store::{At, Node, ReadRequest};
use contexture_wire::ui::{FoldAudience, FoldItem, FoldOptions, Folder};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::path::{Pages, item, message_of, page_count};

/// For whom messages are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// A model: what the host added for it is there, what only people see is not.
    Model,
    /// A person.
    User,
}

impl Conversation {
    /// The messages of this branch, and where its path ended.
    pub(crate) async fn folded(&self, audience: For) -> Result<(At, Vec<UiMessage>), EngineError> {
        let options = FoldOptions {
            audience: match audience {
                For::Model => FoldAudience::Model,
                For::User => FoldAudience::User,
            },
            ..FoldOptions::default()
        };
        let mut at = self.here();
        let mut pages = Pages::of(
            self.store(),
            self.owner(),
            self.id(),
            ReadRequest::whole(at.clone()),
        );
        let Some(first) = pages.next().await? else {
            return Ok((at, Vec::new()));
        };
        // The folder borrows from pages that are there while later ones are not.
        let mut cells: Vec<OnceLock<Vec<Entry>>> = Vec::new();
        cells.resize_with(page_count(first.depth).max(1), OnceLock::new);
        at = first.head.map_or(at, At::Node);
        let mut calls: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut count = 0;
        let mut folder = Folder::new(options);
        let mut page = Some(first);
        for cell in &cells {
            let Some(read) = page else { break };
            let entries = read.nodes.iter().map(|node| Entry::of(node));
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
}

/// What folding needs of a node.
struct Entry {
    node: NodeId,
    item: Item,
    message: MessageId,
    response: Option<ResponseId>,
    answers: Option<NodeId>,
    audience: Audience,
}

impl Entry {
    fn of(node: &Node) -> Result<Self, EngineError> {
        Ok(Self {
            node: node.id,
            item: item(node)?,
            message: message_of(node)?,
            response: node.response,
            answers: node.answers,
            audience: node.audience,
        })
    }
}
