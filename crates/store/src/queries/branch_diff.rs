//! Compares two paths: the nodes that only one of them has.

use contexture_ir::{ConversationId, Owner};

use crate::contract::{Error, PathEnd, PathPage, ReadRequest, Span, Store};
use crate::queries::{Divergence, find_divergence};

/// What two paths have apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchDiff {
    /// Where they part.
    pub divergence: Divergence,
    /// The nodes that only the left path has, oldest first; at most as many as were asked for.
    pub left: PathPage,
    /// The nodes that only the right path has, likewise.
    pub right: PathPage,
}

/// Compares two paths: where they part, and up to `limit` nodes of each side after that. A page
/// says where to go on, by its head and [`Span::From`].
///
/// Costs what [`find_divergence`] costs, and reading the nodes it gives.
pub async fn diff_branches(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    left: PathEnd,
    right: PathEnd,
    limit: usize,
) -> Result<BranchDiff, Error> {
    // The heads are fixed first, so that every question is about the same paths.
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

/// The path to `end` from depth `from` on.
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
