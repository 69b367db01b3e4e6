//! Pinned nodes: their rounds are sent whole in every call, whatever else is cleared or cut.
//!
//! They are the state entry `@pins`, a JSON array of node ids (version 1), so they rewind and fork with
//! the path.

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use contexture_store::NodeQuery;
use serde::{Deserialize, Serialize};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::state_list::{StateList, StateListEntry, node_id};

/// A pinned node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin(#[serde(with = "node_id")] pub(crate) NodeId);

impl StateListEntry for Pin {
    const KEY: &'static str = "@pins";
    const VERSION: u32 = 1;
}

/// What is pinned on a path.
pub(crate) type Pins = StateList<Pin>;

impl Pins {
    pub(crate) fn node_ids(&self) -> BTreeSet<NodeId> {
        self.entries.iter().map(|pin| pin.0).collect()
    }
}

impl Conversation {
    /// Pins a node on this branch: the round it is in is never cleared, previewed or cut. A pinned node
    /// stays pinned.
    ///
    /// What is pinned is required: if it does not fit, a compile is refused.
    ///
    /// # Errors
    /// `NotFound` for a node that the conversation has not; `StateConflict` if somebody pinned
    /// something meanwhile; or the store's.
    pub async fn pin(&self, node: NodeId) -> Result<(), EngineError> {
        let query = NodeQuery::Id(node);
        self.store()
            .find_nodes(self.owner(), self.id(), query)
            .await?;
        let pins = self.load_state_list(self.current_position()).await?;
        let mut nodes = pins.node_ids();
        if nodes.insert(node) {
            self.store_pins(&pins, nodes).await?;
        }
        Ok(())
    }

    /// Takes a pin back, and says whether there was one.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn unpin(&self, node: NodeId) -> Result<bool, EngineError> {
        let pins = self.load_state_list(self.current_position()).await?;
        let mut nodes = pins.node_ids();
        let was = nodes.remove(&node);
        if was {
            self.store_pins(&pins, nodes).await?;
        }
        Ok(was)
    }

    /// What is pinned on this branch.
    pub async fn pins(&self) -> Result<BTreeSet<NodeId>, EngineError> {
        let pins: Pins = self.load_state_list(self.current_position()).await?;
        Ok(pins.node_ids())
    }

    async fn store_pins(&self, pins: &Pins, nodes: BTreeSet<NodeId>) -> Result<(), EngineError> {
        let entries: Vec<Pin> = nodes.into_iter().map(Pin).collect();
        self.append_state(None, pins.replacement_change(&entries)?)
            .await?;
        Ok(())
    }
}
