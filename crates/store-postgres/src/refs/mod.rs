//! Reads at the end of a path that a branch, a checkpoint or a node names.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{Limits, NodeState, PathEnd, PathPage, ReadRequest, StateRequest};
use futures_util::future::try_join;

use crate::connection::error::RowError;
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};
use crate::rows::path::Tip;
use crate::rows::{node_row, state};

pub(crate) mod branch;

/// Reads part of a path.
pub(crate) async fn read_path(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &ReadRequest,
    limits: &Limits,
) -> Result<PathPage, RowError> {
    let (conv, end) = load_path_end(tx, owner, id, &request.at).await?;
    node_row::read_path(tx, &conv, &end, request, limits.page_bytes).await
}

/// Reads the state at the end of a path.
pub(crate) async fn read_state(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &StateRequest,
) -> Result<NodeState, RowError> {
    let (conv, end) = load_path_end(tx, owner, id, &request.at).await?;
    state::read_state(tx, &conv, end.root_no, request).await
}

/// Reads the conversation's row and resolves the end of a path in it.
pub(crate) async fn load_path_end(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    at: &PathEnd,
) -> Result<(ConversationRow, Tip), RowError> {
    // The key is computed from owner and id, so both queries go out in one round trip.
    let key = ConversationKey::of(owner, id).into_bytes();
    try_join(
        ConversationRow::load_for_read(tx, owner, id),
        resolve_end(tx, key, at),
    )
    .await
}

async fn resolve_end(tx: &Tx<'_>, key: [u8; 16], at: &PathEnd) -> Result<Tip, RowError> {
    match at {
        PathEnd::Branch(name) => Ok(branch::get_branch(tx, key, name).await?.tip),
        PathEnd::Checkpoint(name) => {
            let node = branch::checkpoint_node(tx, key, name).await?;
            node_row::load_tip(tx, key, node).await
        }
        PathEnd::Node(id) => node_row::load_tip(tx, key, *id).await,
    }
}
