//! Pinned nodes: their rounds are sent whole in every call, whatever else is cleared or cut.
//!
//! They are the state entry `@pins`, a JSON array of node ids (version 1), so they rewind and fork with
//! the path.

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use serde::{Deserialize, Serialize};

use super::list::{StateList, StateListEntry, node_id};

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
