//! A stored path, read back as items.

use std::sync::Arc;

use contexture_ir::{ConversationId, Item, MessageId, NodeId, Owner};
use contexture_store::{At, Node, ReadRequest, Span, Store};
use futures_util::future::poll_immediate;

use crate::error::EngineError;

/// Nodes from the first to a head, beside their items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    pub(crate) head: Option<NodeId>,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) items: Vec<Arc<Item>>,
}

/// Nodes read at a time: while one page is parsed the store reads the next.
const PAGE: usize = 2_048;

/// Nodes read at a time from the end of a path.
const TAIL: u64 = 512;

impl Path {
    /// Reads and parses a part of a path.
    pub(crate) async fn load(
        store: &dyn Store,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<Self, EngineError> {
        let paged = request.limit.is_none() && request.span == Span::Whole;
        let limit = if paged { Some(PAGE) } else { request.limit };
        let mut page = store
            .read(owner, id, ReadRequest { limit, ..request })
            .await?;
        let mut path = Self {
            head: page.head,
            ..Self::default()
        };
        // The path to the head that the first page names never changes, so the pages are of one
        // instant.
        while let (true, Some(head), Some(next)) = (paged, page.head, page.next) {
            let request = ReadRequest {
                at: At::Node(head),
                span: Span::From(next),
                limit,
            };
            let mut reading = store.read(owner, id, request);
            // Polled once, the store reads while this page is parsed.
            let early = poll_immediate(&mut reading).await;
            path.extend(page.nodes)?;
            page = match early {
                Some(page) => page?,
                None => reading.await?,
            };
        }
        path.extend(page.nodes)?;
        Ok(path)
    }

    /// The end of the path to `head`, from behind the last node that is known: each node of a tree is
    /// read about once, however many branches share it.
    pub(crate) async fn load_new(
        store: &dyn Store,
        owner: &Owner,
        id: &ConversationId,
        head: NodeId,
        known: impl Fn(&NodeId) -> bool,
    ) -> Result<Vec<(Arc<Node>, Arc<Item>)>, EngineError> {
        let mut new = Vec::new();
        let mut end = Some(head);
        while let Some(node) = end {
            let request = ReadRequest::last(At::Node(node), TAIL);
            let page = Self::load(store, owner, id, request).await?;
            let pairs: Vec<_> = page.nodes.into_iter().zip(page.items).collect();
            let kept = pairs.iter().rposition(|(node, _)| known(&node.id));
            end = match (kept, pairs.first()) {
                (None, Some((first, _))) => first.parent,
                _ => None,
            };
            let skip = kept.map_or(0, |last| last + 1);
            new.extend(pairs.into_iter().skip(skip).rev());
        }
        new.reverse();
        Ok(new)
    }

    fn extend(&mut self, nodes: Vec<Arc<Node>>) -> Result<(), EngineError> {
        for node in &nodes {
            self.items.push(parse(node)?);
        }
        self.nodes.extend(nodes);
        Ok(())
    }
}

/// The item of a node.
pub(crate) fn parse(node: &Node) -> Result<Arc<Item>, EngineError> {
    Item::parse(&node.json)
        .map(Arc::new)
        .map_err(|source| EngineError::StoredItem {
            node: node.id,
            source,
        })
}

/// The message a node belongs to.
pub(crate) fn message_of(node: &Node) -> Result<MessageId, EngineError> {
    Ok(match &node.message_id {
        Some(id) => id.clone(),
        None => MessageId::new(node.id.to_string())?,
    })
}
