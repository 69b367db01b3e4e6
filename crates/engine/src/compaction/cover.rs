//! The state entry `@cover`: which compactions are in effect, and what they stand for.
//!
//! Version 1 is a JSON array of objects with the node ids `compaction`, `first` and `last`. It hangs off the
//! path, so it rewinds and forks with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_compile::Cover;
use contexture_ir::NodeId;
use contexture_store::Node;
use serde::{Deserialize, Serialize};

use crate::state_list::{StateList, StateListEntry, node_id};

/// A compaction in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverEntry {
    /// The compaction item.
    #[serde(with = "node_id")]
    pub compaction: NodeId,
    /// The first node it stands for.
    #[serde(with = "node_id")]
    pub first: NodeId,
    /// The last.
    #[serde(with = "node_id")]
    pub last: NodeId,
}

impl StateListEntry for CoverEntry {
    const KEY: &'static str = "@cover";
    const VERSION: u32 = 1;
}

/// What is in effect on a path.
pub(crate) type Covers = StateList<CoverEntry>;

impl Covers {
    /// The covers by their places on a path; one with a node that is not there is left out.
    pub(crate) fn covers_on_path(&self, nodes: &[Arc<Node>]) -> Vec<Cover> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let places: BTreeMap<NodeId, usize> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.id, at))
            .collect();
        let at = |entry: &CoverEntry| {
            Some(Cover {
                compaction: *places.get(&entry.compaction)?,
                first: *places.get(&entry.first)?,
                last: *places.get(&entry.last)?,
            })
        };
        self.entries.iter().filter_map(at).collect()
    }
}
