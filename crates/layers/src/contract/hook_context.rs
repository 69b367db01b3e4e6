//! The context of every hook, and the events it emits.

use std::sync::{Arc, Mutex, PoisonError};

use contexture_ir::{BranchName, ConversationId, NodeId, Owner, Raw, RunId};
use serde::Serialize;

use crate::contract::host::{EmptyHost, LayerHost};
use crate::contract::layer_id::LayerId;

/// Context of a hook. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// Owner of the conversation.
    pub owner: Owner,
    /// Id of the conversation.
    pub conversation: ConversationId,
    /// Its resource, if it has one.
    pub resource: Option<String>,
    /// Name of the branch.
    pub branch: BranchName,
    /// The head of the path; `None` at the root.
    pub head: Option<NodeId>,
    /// The run, if there is one.
    pub run: Option<RunId>,
    /// How many ancestors the run has.
    pub depth: u32,
    /// Number of turns on the path to `head`; each user message starts one.
    pub turns: u64,
    /// Number of model answers on the path to `head`.
    pub responses: u64,
    /// Current time in milliseconds since the Unix epoch, by the engine's clock.
    pub now_ms: i64,
    /// Services that the layer may use.
    pub host: Arc<dyn LayerHost>,
    events: Arc<Mutex<Vec<LayerEvent>>>,
}

/// An event of a layer for observers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerEvent {
    /// The layer that emitted it.
    pub layer: LayerId,
    /// Name of the event, such as `memory:changed`.
    pub name: String,
    /// Payload of the event, as JSON.
    pub data: Raw,
}

impl HookContext {
    /// Creates the context of a conversation at its root: no run, no resource, no host, time 0.
    #[must_use]
    pub fn new(owner: Owner, conversation: ConversationId, branch: BranchName) -> Self {
        Self {
            owner,
            conversation,
            resource: None,
            branch,
            head: None,
            run: None,
            depth: 0,
            turns: 0,
            responses: 0,
            now_ms: 0,
            host: Arc::new(EmptyHost),
            events: Arc::default(),
        }
    }

    /// Emits an event to observers of the conversation. They receive it once the hook's change is stored.
    pub fn emit(&self, layer: &LayerId, name: &str, data: Raw) {
        let event = LayerEvent {
            layer: layer.clone(),
            name: name.to_owned(),
            data,
        };
        // A panic elsewhere cannot leave the list half changed.
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(event);
    }

    /// Takes the events emitted so far.
    #[must_use]
    pub fn drain_events(&self) -> Vec<LayerEvent> {
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told)
    }

    /// Returns the same context with an empty list of events, so that the events of a failed hook can be dropped.
    #[must_use]
    pub(crate) fn fork(&self) -> Self {
        Self {
            events: Arc::default(),
            ..self.clone()
        }
    }

    /// Appends the events of a forked context.
    pub(crate) fn merge_events(&self, apart: &Self) {
        let news = apart.drain_events();
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(news);
    }
}
