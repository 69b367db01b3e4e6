//! The messages of a path a page at a time, from the newest back.
//!
//! A page reads the nodes that it shows and some before them, never the whole path: a message begins somewhere among the nodes
//! before, and only there it is known to be whole.

use contexture_ir::{NodeId, UiMessage};
use contexture_store::{PathEnd, ReadRequest, Span, read_all_pages};
use contexture_wire::ui::UnknownFields;

use super::messages::{FoldNode, MessageView, fold_nodes, parse_page};
use super::resolve::retain_shown;
use crate::error::EngineError;
use crate::handle::Conversation;

/// Nodes read for each message of a page, at first. A step of an agent has a call, its output and an answer.
const NODES_PER_MESSAGE: u64 = 4;
/// The fewest nodes that are read at once.
const FEWEST_NODES: u64 = 64;

/// Messages of a path, oldest first, and where those before them end.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePage {
    /// The messages of the page.
    pub messages: Vec<UiMessage>,
    /// Where the messages before them end; `None` if there are none.
    pub older: Option<OlderMessages>,
}

/// The end of a page of older messages. The path to a node never changes, so all pages are of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderMessages {
    /// The head of the path.
    pub head: NodeId,
    /// Depth of the last node of the page; 1 is the first of the path.
    pub depth: u64,
}

/// Loads the newest messages of this branch, or those before a page; at most `limit`, at least one.
pub(crate) async fn load_message_page(
    chat: &Conversation,
    audience: MessageView,
    before: Option<OlderMessages>,
    limit: usize,
) -> Result<MessagePage, EngineError> {
    let limit = limit.max(1);
    let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
    let before = match before {
        Some(before) => before,
        None => {
            let newest = ReadRequest::last_nodes(chat.current_position(), 1);
            let newest = store.read_path(owner, id, newest).await?;
            let Some(head) = newest.head else {
                let messages = Vec::new();
                return Ok(MessagePage {
                    messages,
                    older: None,
                });
            };
            let depth = newest.depth;
            OlderMessages { head, depth }
        }
    };
    let OlderMessages { head, depth: last } = before;
    let mut count = (limit as u64 * NODES_PER_MESSAGE).max(FEWEST_NODES);
    loop {
        let first = last.saturating_sub(count - 1).max(1);
        let request = ReadRequest {
            at: PathEnd::Node(head),
            span: Span::Between(first, last),
            limit: None,
        };
        let read = read_all_pages(store, owner, id, request).await?;
        let nodes = parse_page(&read)?;
        let mut messages = fold_nodes(audience, UnknownFields::Kept, &nodes);
        if first > 1 && !messages.is_empty() {
            // It may have begun before these nodes.
            messages.remove(0);
        }
        retain_shown(audience, &mut messages);
        messages.drain(..messages.len().saturating_sub(limit));
        let begin = messages.first().and_then(|message| {
            let begins = |node: &FoldNode| node.is_of_message(&message.id);
            nodes.iter().position(begins)
        });
        if let Some(begin) = begin {
            let depth = first + begin as u64 - 1;
            let older = (depth > 0).then_some(OlderMessages { head, depth });
            return Ok(MessagePage { messages, older });
        }
        if first == 1 {
            return Ok(MessagePage {
                messages,
                older: None,
            });
        }
        // All of them are of one message, or shown to nobody.
        count = count.saturating_mul(4);
    }
}
