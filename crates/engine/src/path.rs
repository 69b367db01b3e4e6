//! Stored paths, read back as items.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_compile::{GrowingPath, PathItem};
use contexture_ir::{ConversationId, Item, MessageId, NodeId, Owner};
use contexture_store::{Node, NodeKind, PathEnd, PathPage, PathPages, ReadRequest, Store};

use crate::error::EngineError;

/// Nodes from the first to a head, beside their items.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredPath {
    pub(crate) head: Option<NodeId>,
    pub(crate) nodes: Vec<Arc<Node>>,
    /// As they go into a call where nothing is pinned: a call borrows them.
    pub(crate) items: GrowingPath,
    /// Answers of models, as far as the nodes name them.
    responses: u64,
    bytes: usize,
    has_redacted_compaction: bool,
    places: KnownPlaces,
}

/// Where nodes stand on a path that were looked for before. A place never changes while the path grows.
#[derive(Debug, Default)]
struct KnownPlaces(Mutex<BTreeMap<NodeId, usize>>);

impl KnownPlaces {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, usize>> {
        // Each entry is right by itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for KnownPlaces {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

/// Nodes read at a time from the end of a path.
const TAIL: u64 = 512;

impl StoredPath {
    /// Reads and parses a part of a path.
    pub(crate) async fn load(
        store: &dyn Store,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<Self, EngineError> {
        let mut path = Self::default();
        let mut pages = PathPages::new(store, owner, id, request);
        while let Some(page) = pages.next().await? {
            path.head = page.head;
            path.extend_nodes(page.nodes)?;
        }
        Ok(path)
    }

    /// The end of the path to `head`, from behind the last node that is known: each node of a tree is
    /// read about once, however many branches share it.
    pub(crate) async fn load_unknown(
        store: &dyn Store,
        owner: &Owner,
        id: &ConversationId,
        head: NodeId,
        known: impl Fn(&NodeId) -> bool,
    ) -> Result<Vec<(Arc<Node>, Arc<Item>)>, EngineError> {
        let mut new = Vec::new();
        let mut end = Some(head);
        while let Some(node) = end {
            let request = ReadRequest::last_nodes(PathEnd::Node(node), TAIL);
            let page = Self::load(store, owner, id, request).await?;
            let items = page.items.into_iter().map(|one| one.item);
            let pairs: Vec<_> = page.nodes.into_iter().zip(items).collect();
            // The last known node: what stands before it is known as well.
            let last_known = pairs.iter().rposition(|(node, _)| known(&node.id));
            end = match (last_known, pairs.first()) {
                (None, Some((first, _))) => first.parent,
                _ => None,
            };
            let skip = last_known.map_or(0, |last| last + 1);
            new.extend(pairs.into_iter().skip(skip).rev());
        }
        new.reverse();
        Ok(new)
    }

    /// Answers of models on it.
    pub(crate) const fn response_count(&self) -> u64 {
        self.responses
    }

    /// The places of these nodes, from 0; a node that is not on the path has none. The path is walked once for a node, and not
    /// again for every call.
    pub(crate) fn places_of(&self, nodes: &BTreeSet<NodeId>) -> BTreeMap<NodeId, usize> {
        let mut known = self.places.lock();
        if !nodes.iter().all(|id| known.contains_key(id)) {
            // Those of compactions that are no longer in effect are not kept.
            let walked = (0..).zip(&self.nodes);
            let found = walked.filter(|(_, node)| nodes.contains(&node.id));
            *known = found.map(|(at, node)| (node.id, at)).collect();
        }
        let places = nodes.iter().filter_map(|id| Some((*id, *known.get(id)?)));
        places.collect()
    }

    /// Whether a compaction on it was redacted.
    pub(crate) const fn has_redacted_compaction(&self) -> bool {
        self.has_redacted_compaction
    }

    /// The bytes of its nodes' JSON.
    pub(crate) const fn json_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds what a page continues it by.
    pub(crate) fn append_page(&mut self, page: PathPage) -> Result<(), EngineError> {
        self.extend_nodes(page.nodes)?;
        self.head = page.head;
        Ok(())
    }

    fn extend_nodes(&mut self, nodes: Vec<Arc<Node>>) -> Result<(), EngineError> {
        for node in nodes {
            self.items.push(PathItem {
                node: Some(node.id),
                item: Arc::new(parse_node_item(&node)?),
                hash: node.content_hash,
                audience: node.audience,
                pinned: false,
                origin: node.origin,
            });
            // The items of an answer stand together.
            let last = self.nodes.last().and_then(|last| last.response);
            if node.response.is_some() && node.response != last {
                self.responses += 1;
            }
            self.bytes += node.json.len();
            self.has_redacted_compaction |=
                node.kind == NodeKind::Compaction && node.redacted_ms.is_some();
            self.nodes.push(node);
        }
        Ok(())
    }
}

/// The item of a node.
///
/// # Errors
/// [`EngineError::StoredItem`] if it cannot be read.
pub fn parse_node_item(node: &Node) -> Result<Item, EngineError> {
    Item::parse(&node.json).map_err(|source| EngineError::StoredItem {
        node: node.id,
        source,
    })
}

/// The message a node belongs to.
pub(crate) fn message_id_of(node: &Node) -> Result<MessageId, EngineError> {
    Ok(match &node.message_id {
        Some(id) => id.clone(),
        None => MessageId::new(node.id.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use contexture_ir::user;
    use contexture_store::Span;

    use super::*;
    use crate::Engine;

    #[tokio::test]
    async fn places_stay_as_the_path_grows() {
        let chat = Engine::in_memory().conversation("c").open().await.unwrap();
        let mut ids = Vec::new();
        for number in 0..5 {
            ids.extend(chat.save([user(format!("{number}"))]).await.unwrap().nodes);
        }
        let request = ReadRequest::whole_path(chat.current_position());
        let mut path = crate::handle::load_path(&chat, request).await.unwrap();
        let wanted = BTreeSet::from([ids[3], ids[1]]);
        let expected = BTreeMap::from([(ids[1], 1), (ids[3], 3)]);
        assert_eq!(path.places_of(&wanted), expected);
        let more = chat.save([user("more")]).await.unwrap().nodes;
        let request = ReadRequest {
            at: chat.current_position(),
            span: Span::From(6),
            limit: None,
        };
        let page = chat.store().read_path(chat.owner(), chat.id(), request);
        path.append_page(page.await.unwrap()).unwrap();
        // Of the kept places one is asked for again, and a new one.
        let wanted = BTreeSet::from([ids[1], more[0]]);
        let expected = BTreeMap::from([(ids[1], 1), (more[0], 5)]);
        assert_eq!(path.clone().places_of(&wanted), expected);
        assert_eq!(path.places_of(&wanted), expected);
    }
}
