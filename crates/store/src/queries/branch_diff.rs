//! Compares two paths: the nodes that only one of them has.

use contexture_ir::{ConversationId, Owner};

use crate::contract::{Error, PathEnd, PathPage, ReadRequest, Span, Store};
use crate::queries::{Divergence, find_divergence};

/// Difference between two paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchDiff {
    /// Point at which the paths diverge.
    pub divergence: Divergence,
    /// Nodes that only the left path has, oldest first, up to the requested limit.
    pub left: PathPage,
    /// Nodes that only the right path has, oldest first, up to the requested limit.
    pub right: PathPage,
}

/// Compares two paths: where they diverge, and up to `limit` nodes of each side after that. To read
/// further, use the page's head with [`Span::From`].
///
/// Costs as much as [`find_divergence`] and reading the returned nodes.
pub async fn diff_branches(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    left: PathEnd,
    right: PathEnd,
    limit: usize,
) -> Result<BranchDiff, Error> {
    // The heads are fixed first, so that all reads concern the same paths.
    let ends = [
        store
            .read_path(owner, id, ReadRequest::last_nodes(left, 0))
            .await?,
        store
            .read_path(owner, id, ReadRequest::last_nodes(right, 0))
            .await?,
    ];
    let divergence = match ends.each_ref().map(|end| end.head) {
        [Some(left), Some(right)] => {
            find_divergence(store, owner, id, PathEnd::Node(left), PathEnd::Node(right)).await?
        }
        _ => Divergence {
            ancestor: None,
            shared: 0,
            left: ends[0].depth,
            right: ends[1].depth,
        },
    };
    let from = divergence.shared + 1;
    let [left, right] = ends;
    Ok(BranchDiff {
        left: read_side(store, owner, id, left, from, limit).await?,
        right: read_side(store, owner, id, right, from, limit).await?,
        divergence,
    })
}

/// Reads the path to `end` from depth `from` on.
async fn read_side(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    end: PathPage,
    from: u64,
    limit: usize,
) -> Result<PathPage, Error> {
    let Some(head) = end.head else {
        return Ok(end);
    };
    let request = ReadRequest {
        at: PathEnd::Node(head),
        span: Span::From(from),
        limit: Some(limit),
    };
    store.read_path(owner, id, request).await
}
