//! The state entry `@cover`: which compactions are in effect, and which nodes each stands for.
//!
//! Version 1 is a JSON array of objects with the node ids `compaction`, `first` and `last`. The compaction item itself
//! says how it was made, in its field `ctx:covers`.

use std::collections::BTreeSet;

use contexture_compile::Cover;
use contexture_compile::compaction::COVERS;
use contexture_ir::{Compaction, ContentHash, Fields, NodeId, Raw};
use serde::{Deserialize, Serialize};

use super::list::node_id;
use super::list::{StateList, StateListEntry};
use crate::error::EngineError;
use crate::path::StoredPath;

/// A compaction in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverEntry {
    /// The compaction item.
    #[serde(with = "node_id")]
    pub compaction: NodeId,
    /// The first node it stands for.
    #[serde(with = "node_id")]
    pub first: NodeId,
    /// Last node that it covers.
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
    pub(crate) fn covers_on_path(&self, path: &StoredPath) -> Vec<Cover> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let named = self.entries.iter();
        let named = named.flat_map(|entry| [entry.compaction, entry.first, entry.last]);
        let named: BTreeSet<NodeId> = named.collect();
        let places = path.places_of(&named);
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

/// What a compaction says of how it was made.
pub(crate) fn encode_provenance(
    first: NodeId,
    last: NodeId,
    hash: ContentHash,
    by: Option<&String>,
) -> Result<Raw, EngineError> {
    let mut said = serde_json::json!({
        "first": first.to_string(),
        "last": last.to_string(),
        "content": hash.to_string(),
    });
    if let (Some(by), Some(fields)) = (by, said.as_object_mut()) {
        fields.insert("by".to_owned(), by.clone().into());
    }
    Ok(Raw::from_value(&said)?)
}

/// The content a compactor's summary is of, and the compactor's configuration.
pub(crate) fn parse_provenance(compaction: &Compaction) -> Option<(String, String)> {
    let mut fields: Fields<'_> = compaction.extra.get(COVERS)?.fields()?;
    let content = fields.take_string(&["content"]).ok()??;
    let by = fields.take_string(&["by"]).ok()??;
    Some((content, by))
}
