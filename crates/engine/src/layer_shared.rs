//! Layers' states outside the tree, as they are stored: versioned values of a resource, the conversation or the owner.
//!
//! They go out with the append they are about, each by compare-and-set. Not here: reading them (`layer_store`).

use contexture_layers::{Changed, HookContext, LayerId, Scope, Stored};
use contexture_store::{Entry, Expected, KeyScope, PutEntry};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::EngineError;
use crate::layer_session::LayerSession;

/// A state, as it is stored.
#[derive(Serialize, Deserialize)]
struct Shared {
    version: u32,
    state: Box<RawValue>,
}

/// A layer's state as it is to be written.
pub(crate) type SharedPut = (LayerId, (KeyScope, PutEntry));

impl LayerSession {
    /// What is to be stored outside the tree: each write replaces what was read, and fails if another was faster.
    pub(crate) fn shared_changes(&self, now_ms: i64) -> Result<Vec<SharedPut>, EngineError> {
        let changed = self.layers.changed(&self.states).into_iter();
        let shared = changed.filter(|changed| !changed.scope.on_tree());
        let put = |changed: Changed| {
            let key = shared_key(&changed.layer);
            let read = self.shared.get(&changed.layer).copied().flatten();
            let put = PutEntry {
                value: Some(written(&key, &changed.now)?.into()),
                key,
                expect: read.map_or(Expected::Absent, Expected::Version),
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
pub(crate) fn shared_state(entry: &Entry) -> Result<Stored, EngineError> {
    let read: Shared = serde_json::from_slice(&entry.value).map_err(|e| broken(&entry.key, e))?;
    Ok(Stored {
        version: read.version,
        bytes: read.state.get().as_bytes().into(),
    })
}

fn written(key: &str, now: &Stored) -> Result<Vec<u8>, EngineError> {
    let shared = Shared {
        version: now.version,
        state: serde_json::from_slice(&now.bytes).map_err(|error| broken(key, error))?,
    };
    serde_json::to_vec(&shared).map_err(|error| broken(key, error))
}

fn broken(key: &str, error: serde_json::Error) -> EngineError {
    EngineError::StoredState {
        key: key.to_owned(),
        why: error.to_string(),
    }
}

pub(crate) fn shared_key(layer: &LayerId) -> String {
    format!("layers/{layer}")
}

pub(crate) fn shared_scope(context: &HookContext, scope: Scope) -> KeyScope {
    match (scope, &context.resource) {
        (Scope::Resource, Some(resource)) => KeyScope::Resource(resource.clone()),
        (Scope::Global, _) => KeyScope::Owner,
        _ => KeyScope::Conversation(context.conversation.clone()),
    }
}
