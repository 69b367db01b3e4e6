//! Pinning nodes: a pinned round is sent whole in every call, whatever else is cleared or cut.
//!
//! Not here: how pins are stored (`state`), what the compiler does with them (`contexture-compile`).

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use contexture_store::NodeQuery;

use super::state::append_state;
use crate::error::EngineError;
use crate::handle::{Conversation, load_state_list};
use crate::state::Pins;

/// Pins a node on this branch: its round is never cleared, previewed or cut. Pinning a pinned node does
/// nothing.
pub(crate) async fn pin_node(chat: &Conversation, node: NodeId) -> Result<(), EngineError> {
    // Checked first: a pin of an unknown node would be stored and have no effect.
    let query = NodeQuery::Id(node);
    chat.store()
        .find_nodes(chat.owner(), chat.id(), query)
        .await?;
    let pins = load_state_list(chat, chat.current_position()).await?;
    let mut nodes = pins.node_ids();
    // Nothing is appended for a node that is pinned already: state nodes lengthen the path.
    if nodes.insert(node) {
        store_pins(chat, &pins, nodes).await?;
    }
    Ok(())
}

/// Removes a pin and returns whether there was one.
pub(crate) async fn unpin_node(chat: &Conversation, node: NodeId) -> Result<bool, EngineError> {
    let pins = load_state_list(chat, chat.current_position()).await?;
    let mut nodes = pins.node_ids();
    let was = nodes.remove(&node);
    if was {
        store_pins(chat, &pins, nodes).await?;
    }
    Ok(was)
}

/// Loads the pinned nodes of this branch.
pub(crate) async fn load_pins(chat: &Conversation) -> Result<BTreeSet<NodeId>, EngineError> {
    let pins: Pins = load_state_list(chat, chat.current_position()).await?;
    Ok(pins.node_ids())
}

async fn store_pins(
    chat: &Conversation,
    pins: &Pins,
    nodes: BTreeSet<NodeId>,
) -> Result<(), EngineError> {
    append_state(chat, None, pins.change_to(nodes)?).await?;
    Ok(())
}
