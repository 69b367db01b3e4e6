//! The redaction closure: everything that repeats the content of the nodes to be redacted.
//!
//! It follows recorded references: copies in both directions, compactions, and blobs that items
//! name. It does not follow state entries, because nothing records which nodes a layer's value was
//! made from; a caller that knows adds the hash to [`RedactRequest::values`].

use std::collections::BTreeSet;

use contexture_ir::{ConversationId, NodeId, Owner};

use crate::contract::{
    BlobId, EntityKind, Error, Node, NodeKind, NodeQuery, PathEnd, ReadRequest, RedactRequest,
    Span, Store,
};
use crate::queries::load_graph;

/// Computes what to redact with `nodes`: the nodes, their sources and copies, the compactions after
/// any of these on a path, and the blobs that only these name. Nothing is changed: show the request
/// to the user, then pass it to [`Store::redact_content`].
///
/// Costs a few reads for each node and compaction, and a read of the whole tree if a blob is named.
pub async fn compute_redaction_closure(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    nodes: &[NodeId],
    at_ms: i64,
) -> Result<RedactRequest, Error> {
    let compactions = NodeQuery::Kind(NodeKind::Compaction);
    let compactions = store.find_nodes(owner, id, compactions).await?;
    let mut request = RedactRequest {
        at_ms,
        ..RedactRequest::default()
    };
    let mut named = BTreeSet::new();
    let mut known = BTreeSet::new();
    // A work list, since copies of copies and compactions of compactions may reach any depth.
    let mut open: Vec<NodeId> = nodes.to_vec();
    while let Some(next) = open.pop() {
        if !known.insert(next) {
            continue;
        }
        for node in store.find_nodes(owner, id, NodeQuery::Id(next)).await? {
            named.extend(BlobId::find_in_text(&node.json));
            open.extend(node.copied_from);
            let copies = store
                .find_nodes(owner, id, NodeQuery::CopiesOf(next))
                .await?;
            open.extend(copies.iter().map(|copy| copy.id));
            // A summary repeats what it covers in other words, so a text search would not find it.
            for compaction in &compactions {
                if !known.contains(&compaction.id)
                    && is_covered_by(store, owner, id, compaction, &node).await?
                {
                    open.push(compaction.id);
                }
            }
        }
    }
    request.blobs = blobs_named_only_by(store, owner, id, &known, named).await?;
    request.nodes = known.into_iter().collect();
    Ok(request)
}

/// Returns whether a compaction covers a node: it covers everything before it on its path.
async fn is_covered_by(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    compaction: &Node,
    node: &Node,
) -> Result<bool, Error> {
    // Saves a read for most pairs: a node at the same or a greater depth cannot be covered.
    if node.depth >= compaction.depth {
        return Ok(false);
    }
    let request = ReadRequest {
        at: PathEnd::Node(compaction.id),
        span: Span::Between(node.depth, node.depth),
        limit: None,
    };
    let page = store.read_path(owner, id, request).await?;
    Ok(page
        .nodes
        .first()
        .is_some_and(|on_path| on_path.id == node.id))
}

/// Returns those of `blobs` that exist and that no reachable node outside `nodes` names.
async fn blobs_named_only_by(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    nodes: &BTreeSet<NodeId>,
    mut blobs: BTreeSet<BlobId>,
) -> Result<Vec<BlobId>, Error> {
    let mut stored = Vec::new();
    for blob in std::mem::take(&mut blobs) {
        match store.read_blob(owner, id, blob).await {
            Ok(_) => stored.push(blob),
            Err(Error::NotFound {
                what: EntityKind::Blob,
                ..
            }) => {}
            Err(error) => return Err(error),
        }
    }
    // Without an existing blob, the whole tree need not be read.
    if stored.is_empty() {
        return Ok(stored);
    }
    let mut elsewhere = BTreeSet::new();
    for one in load_graph(store, owner, id).await?.nodes {
        if !nodes.contains(&one.id) {
            for node in store.find_nodes(owner, id, NodeQuery::Id(one.id)).await? {
                elsewhere.extend(BlobId::find_in_text(&node.json));
            }
        }
    }
    // A blob that other nodes name stays, since these nodes are not redacted.
    stored.retain(|blob| !elsewhere.contains(blob));
    Ok(stored)
}
