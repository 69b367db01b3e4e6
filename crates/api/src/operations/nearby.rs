//! What stands beside an item on its path: the turn around a hit of a search.

use std::sync::Arc;

use contexture::engine::parse_node_item;
use contexture::ir::ConversationId;
use contexture::store::{Hit, Node, NodeQuery, PathEnd, ReadRequest, Span, Store, read_all_pages};
use contexture::{Engine, EngineError, Owner};

use crate::documents::{NearbyDocument, NearbyItemDocument};

/// Largest number of items that are shown on each side of a hit.
pub const MAX_NEARBY: u64 = 10;

/// How many nodes are read for each item that is shown: those without a text, and those that people may not see, are passed over.
const READ_FOR_EACH: u64 = 4;

/// A place on a path.
#[derive(Clone, Debug)]
pub struct PathPlace {
    /// The node that stands there.
    pub node: Arc<Node>,
    /// End of the path.
    pub at: PathEnd,
}

/// Finds a place of one of some nodes, oldest first: the newest that is on the path to `at`; else the last of them, at the end
/// of its own path. `None` without nodes.
///
/// # Errors
/// The store's.
pub async fn find_place(
    store: &dyn Store,
    (owner, id): (&Owner, &ConversationId),
    at: &PathEnd,
    nodes: &[Arc<Node>],
) -> Result<Option<PathPlace>, EngineError> {
    for node in nodes.iter().rev() {
        let request = ReadRequest {
            at: at.clone(),
            // One position is read, however long the path is.
            span: Span::Between(node.depth, node.depth),
            limit: None,
        };
        let page = store.read_path(owner, id, request).await?;
        if page.nodes.first().is_some_and(|there| there.id == node.id) {
            return Ok(Some(PathPlace {
                node: Arc::clone(node),
                at: at.clone(),
            }));
        }
    }
    Ok(nodes.last().map(|node| PathPlace {
        node: Arc::clone(node),
        at: PathEnd::Node(node.id),
    }))
}

/// Loads the items before and after a hit, at most `count` on each side and [`MAX_NEARBY`]: on the path to `at`, else on the path
/// that ends with the hit. Items that people may not see are passed over.
///
/// # Errors
/// The store's.
pub(crate) async fn load_nearby(
    engine: &Engine,
    owner: &Owner,
    hit: &Hit,
    at: &PathEnd,
    count: u64,
) -> Result<NearbyDocument, EngineError> {
    let store = &**engine.store();
    let id = &hit.conversation;
    let nodes = store.find_nodes(owner, id, NodeQuery::Id(hit.node)).await?;
    let Some(place) = find_place(store, (owner, id), at, &nodes).await? else {
        return Ok(NearbyDocument::default());
    };
    let (depth, count) = (place.node.depth, count.min(MAX_NEARBY));
    let reach = count * READ_FOR_EACH;
    let request = ReadRequest {
        at: place.at,
        span: Span::Between(depth.saturating_sub(reach).max(1), depth + reach),
        limit: None,
    };
    let page = read_all_pages(store, owner, id, request).await?;
    let (before, rest): (Vec<_>, Vec<_>) = page.nodes.iter().partition(|node| node.depth < depth);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut before = describe_items(before.into_iter().rev(), count)?;
    before.reverse();
    Ok(NearbyDocument {
        before,
        after: describe_items(rest.into_iter().skip(1), count)?,
    })
}

fn describe_items<'n>(
    nodes: impl Iterator<Item = &'n Arc<Node>>,
    count: usize,
) -> Result<Vec<NearbyItemDocument>, EngineError> {
    let mut items = Vec::new();
    for node in nodes.filter(|node| node.audience.user && node.redacted_ms.is_none()) {
        if items.len() == count {
            break;
        }
        let text = parse_node_item(node)?.text();
        if !text.trim().is_empty() {
            items.push(NearbyItemDocument::new(node, &text));
        }
    }
    Ok(items)
}
