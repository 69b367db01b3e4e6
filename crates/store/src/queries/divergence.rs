//! Finds the node at which two paths diverge.

use contexture_ir::{ConversationId, NodeId, Owner};

use crate::contract::{Error, PathEnd, ReadRequest, Span, Store};

/// Point at which two paths diverge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Last node that both paths share; `None` if they share none.
    pub ancestor: Option<NodeId>,
    /// Number of shared nodes.
    pub shared: u64,
    /// Number of nodes that only the left path has.
    pub left: u64,
    /// Number of nodes that only the right path has.
    pub right: u64,
}

/// Finds the last node that the paths to `left` and `right` share.
///
/// A binary search over the depth, since paths that agree at a depth agree at every smaller one.
/// Takes about 2 log₂(depth) reads of one node, whatever the backend.
pub async fn find_divergence(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    left: PathEnd,
    right: PathEnd,
) -> Result<Divergence, Error> {
    let ends = [
        store
            .read_path(owner, id, ReadRequest::last_nodes(left, 0))
            .await?,
        store
            .read_path(owner, id, ReadRequest::last_nodes(right, 0))
            .await?,
    ];
    // Names are resolved to nodes once, so that a branch that moves meanwhile does not change the
    // paths.
    let depths = ends.each_ref().map(|page| page.depth);
    let heads = ends.each_ref().map(|page| page.head);
    let [Some(left), Some(right)] = heads else {
        return Ok(build_divergence(None, 0, depths));
    };
    // Invariant: the paths agree at `low` (0 trivially) and differ at `high` (one past the shorter
    // end).
    let (mut low, mut high, mut ancestor) = (0, depths[0].min(depths[1]) + 1, None);
    while high - low > 1 {
        let depth = low + (high - low) / 2;
        let on_left = load_node_at_depth(store, owner, id, left, depth).await?;
        if on_left == load_node_at_depth(store, owner, id, right, depth).await? {
            (low, ancestor) = (depth, on_left);
        } else {
            high = depth;
        }
    }
    Ok(build_divergence(ancestor, low, depths))
}

fn build_divergence(ancestor: Option<NodeId>, shared: u64, [left, right]: [u64; 2]) -> Divergence {
    Divergence {
        ancestor,
        shared,
        left: left - shared,
        right: right - shared,
    }
}

async fn load_node_at_depth(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    end: NodeId,
    depth: u64,
) -> Result<Option<NodeId>, Error> {
    let request = ReadRequest {
        at: PathEnd::Node(end),
        span: Span::Between(depth, depth),
        limit: None,
    };
    let page = store.read_path(owner, id, request).await?;
    Ok(page.nodes.first().map(|node| node.id))
}
