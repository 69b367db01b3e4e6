//! The state entry `@pins`: a JSON array of node ids (version 1).
//!
//! It hangs off the path, so pins rewind and fork with it. Not here: pinning (`append`).

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use serde::{Deserialize, Serialize};

use super::list::{StateList, StateListEntry, node_id};
use crate::error::EngineError;
use contexture_store::StateChange;

/// A pinned node.
///
/// The whole round of a pinned node is kept in calls, so that a call is never separated from its output. A pin of a node
/// that is not on the path has no effect there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin(#[serde(with = "node_id")] pub(crate) NodeId);

impl StateListEntry for Pin {
    const KEY: &'static str = "@pins";
    const VERSION: u32 = 1;
}

/// The pins in effect at a node.
pub(crate) type Pins = StateList<Pin>;

impl Pins {
    /// Returns the pinned nodes, in the order of their ids.
    pub(crate) fn node_ids(&self) -> BTreeSet<NodeId> {
        self.entries.iter().map(|pin| pin.0).collect()
    }

    /// Returns the change that replaces the pins that were read by these nodes.
    pub(crate) fn change_to(&self, nodes: BTreeSet<NodeId>) -> Result<StateChange, EngineError> {
        let entries: Vec<Pin> = nodes.into_iter().map(Pin).collect();
        self.replacement_change(&entries)
    }
}
