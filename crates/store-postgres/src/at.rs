//! Reading at a place that a branch, a checkpoint or a node names.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{At, Page, ReadRequest, State, StateRequest};
use futures_util::future::try_join;

use crate::branch;
use crate::conv::{Conv, Key};
use crate::fault::Fault;
use crate::node_row;
use crate::path::Tip;
use crate::state;
use crate::tx::Tx;

/// Part of the path to a place.
pub(crate) async fn read(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &ReadRequest,
) -> Result<Page, Fault> {
    let (conv, end) = look(tx, owner, id, &request.at).await?;
    node_row::read(tx, &conv, &end, request).await
}

/// The state at a place.
pub(crate) async fn state(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &StateRequest,
) -> Result<State, Fault> {
    let (conv, end) = look(tx, owner, id, &request.at).await?;
    state::read(tx, &conv, end.root_no, request).await
}

/// The conversation and the place that `at` names in it.
pub(crate) async fn look(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    at: &At,
) -> Result<(Conv, Tip), Fault> {
    let key = Key::of(owner, id).bytes();
    try_join(Conv::see(tx, owner, id), end(tx, key, at)).await
}

async fn end(tx: &Tx<'_>, key: [u8; 16], at: &At) -> Result<Tip, Fault> {
    match at {
        At::Branch(name) => Ok(branch::named(tx, key, name).await?.tip),
        At::Checkpoint(name) => {
            let node = branch::checkpoint(tx, key, name).await?;
            node_row::tip(tx, key, node).await
        }
        At::Node(id) => node_row::tip(tx, key, *id).await,
    }
}
