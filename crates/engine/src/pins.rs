//! Pinned nodes: their rounds are sent whole in every call, whatever else is cleared or cut.
//!
//! They are the state entry `@pins`, a JSON array of node ids (version 1), so they rewind and fork with
//! the path.

use std::collections::BTreeSet;

use contexture_ir::{ContentHash, NodeId};
use contexture_store::{
    AppendAt, AppendRequest, At, Expect, NodeQuery, StateChange, StateKey, StatePatch, StateRequest,
};

use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::state_node::state_node;

const KEY: &str = "@pins";
const VERSION: u32 = 1;

/// What is pinned on a path, and the hash by which a change notices another.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pub(crate) nodes: BTreeSet<NodeId>,
    hash: Option<ContentHash>,
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
        self.store().nodes(self.owner(), self.id(), query).await?;
        let mut pins = self.pins_at(self.here()).await?;
        if pins.nodes.insert(node) {
            self.store_pins(&pins).await?;
        }
        Ok(())
    }

    /// Takes a pin back, and says whether there was one.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn unpin(&self, node: NodeId) -> Result<bool, EngineError> {
        let mut pins = self.pins_at(self.here()).await?;
        let was = pins.nodes.remove(&node);
        if was {
            self.store_pins(&pins).await?;
        }
        Ok(was)
    }

    /// What is pinned on this branch.
    pub async fn pins(&self) -> Result<BTreeSet<NodeId>, EngineError> {
        Ok(self.pins_at(self.here()).await?.nodes)
    }

    pub(crate) async fn pins_at(&self, at: At) -> Result<Pins, EngineError> {
        let key = StateKey::new(KEY)?;
        let request = StateRequest {
            prefix: KEY.to_owned(),
            ..StateRequest::all(at)
        };
        let state = self.store().state(self.owner(), self.id(), request).await?;
        let Some(entry) = state.root.get(&key) else {
            return Ok(Pins::default());
        };
        let broken = |why: String| EngineError::StoredState {
            key: KEY.to_owned(),
            why,
        };
        if entry.version != VERSION {
            let why = format!("version {}, expected {VERSION}", entry.version);
            return Err(broken(why));
        }
        // A redacted value is missing: what it named is gone with it.
        let bytes = state.value(&key).map_or(&b"[]"[..], |bytes| bytes.as_ref());
        let ids: Vec<String> =
            serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?;
        let id = |text: &String| {
            let parsed = text.parse();
            parsed.map_err(|_| broken(format!("{text:?} is no node id")))
        };
        Ok(Pins {
            nodes: ids.iter().map(id).collect::<Result<_, _>>()?,
            hash: Some(entry.hash),
        })
    }

    async fn store_pins(&self, pins: &Pins) -> Result<(), EngineError> {
        let ids: Vec<String> = pins.nodes.iter().map(ToString::to_string).collect();
        let bytes = serde_json::to_vec(&ids).map_err(|error| EngineError::StoredState {
            key: KEY.to_owned(),
            why: error.to_string(),
        })?;
        let expect = pins.hash.map_or(Expect::Absent, Expect::Hash);
        let change = StateChange::put(StateKey::new(KEY)?, VERSION, bytes).expecting(expect);
        let now = self.engine().now_ms();
        let node = state_node(Engine::node_id(&self.engine().fresh_key(), 0), now)?;
        let at = AppendAt::Tip {
            branch: self.branch(),
        };
        let mut request = AppendRequest::new(at, vec![node], now);
        request.patch = StatePatch {
            changes: vec![change],
            from: 0,
        };
        self.store()
            .append(self.owner(), self.id(), request)
            .await?;
        Ok(())
    }
}
