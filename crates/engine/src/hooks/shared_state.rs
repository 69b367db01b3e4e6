//! States of layers outside the tree: versioned values of a resource, the conversation or the owner.
//!
//! They go out with the append they are about, each by compare-and-set. Not here: reading them (`open_session`).

use contexture_layers::{ChangedState, HookContext, LayerId, StateScope, StoredState};
use contexture_store::{ExpectedVersion, KeyScope, KeyValueEntry, PutEntry};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::session::LayerSession;
use crate::error::EngineError;

/// A state, as it is stored.
#[derive(Serialize, Deserialize)]
struct SharedStateRecord {
    version: u32,
    state: Box<RawValue>,
}

/// A layer's state as it is to be written.
pub(crate) type SharedPut = (LayerId, (KeyScope, PutEntry));

impl LayerSession {
    /// What is to be stored outside the tree: each write replaces what was read, and fails if another was faster.
    pub(crate) fn shared_changes(&self, now_ms: i64) -> Result<Vec<SharedPut>, EngineError> {
        let changed = self.layers.changed_states(&self.states).into_iter();
        let shared = changed.filter(|changed| !changed.scope.is_on_tree());
        let put = |changed: ChangedState| {
            let key = shared_key(&changed.layer);
            let read = self.shared.get(&changed.layer).copied().flatten();
            let put = PutEntry {
                value: Some(encode_shared_state(&key, &changed.current)?.into()),
                key,
                expect: read.map_or(ExpectedVersion::Absent, ExpectedVersion::Version),
                at_ms: now_ms,
            };
            Ok((
                changed.layer,
                (shared_scope(&self.context, changed.scope), put),
            ))
        };
        shared.map(put).collect()
    }
}

/// A stored state.
pub(crate) fn decode_shared_state(entry: &KeyValueEntry) -> Result<StoredState, EngineError> {
    let read: SharedStateRecord =
        serde_json::from_slice(&entry.value).map_err(|e| stored_state_error(&entry.key, e))?;
    Ok(StoredState {
        version: read.version,
        bytes: read.state.get().as_bytes().into(),
    })
}

fn encode_shared_state(key: &str, now: &StoredState) -> Result<Vec<u8>, EngineError> {
    let shared = SharedStateRecord {
        version: now.version,
        state: serde_json::from_slice(&now.bytes)
            .map_err(|error| stored_state_error(key, error))?,
    };
    serde_json::to_vec(&shared).map_err(|error| stored_state_error(key, error))
}

fn stored_state_error(key: &str, error: serde_json::Error) -> EngineError {
    EngineError::StoredState {
        key: key.to_owned(),
        reason: error.to_string(),
    }
}

pub(crate) fn shared_key(layer: &LayerId) -> String {
    format!("layers/{layer}")
}

pub(crate) fn shared_scope(context: &HookContext, scope: StateScope) -> KeyScope {
    match (scope, &context.resource) {
        // A conversation without a resource keeps such states for itself.
        (StateScope::Resource, Some(resource)) => KeyScope::Resource(resource.clone()),
        (StateScope::Global, _) => KeyScope::Owner,
        _ => KeyScope::Conversation(context.conversation.clone()),
    }
}
