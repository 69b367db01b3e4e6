//! What every hook is told, and where it tells what happened.

use std::sync::{Arc, Mutex, PoisonError};

use contexture_ir::{BranchName, ConversationId, NodeId, Owner, Raw, RunId};
use serde::Serialize;

use crate::contract::host::{EmptyHost, LayerHost};
use crate::contract::layer_id::LayerId;

/// What every hook is told. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// Whose conversation it is.
    pub owner: Owner,
    /// Id of the conversation.
    pub conversation: ConversationId,
    /// Its resource, if it has one.
    pub resource: Option<String>,
    /// Name of the branch.
    pub branch: BranchName,
    /// The node everything hangs off; `None` at the root.
    pub head: Option<NodeId>,
    /// The run, if there is one.
    pub run: Option<RunId>,
    /// How many ancestors the run has.
    pub depth: u32,
    /// Turns on the path to `head`: a person's message begins one.
    pub turns: u64,
    /// Answers of models on the path to `head`.
    pub responses: u64,
    /// Now, in milliseconds since the Unix epoch, as the engine's clock has it.
    pub now_ms: i64,
    /// What it may ask for.
    pub host: Arc<dyn LayerHost>,
    events: Arc<Mutex<Vec<LayerEvent>>>,
}

/// Something a layer tells those who watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerEvent {
    /// Whose news it is.
    pub layer: LayerId,
    /// What happened, as `memory:changed`.
    pub name: String,
    /// Payload of the event, as JSON.
    pub data: Raw,
}

impl HookContext {
    /// The context of a conversation at its root: no run, no resource, no host, the time 0.
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

    /// Tells those who watch the conversation. They hear of it once what the hook changed is stored.
    pub fn emit(&self, layer: &LayerId, name: &str, data: Raw) {
        let event = LayerEvent {
            layer: layer.clone(),
            name: name.to_owned(),
            data,
        };
        // A list is whole whoever panicked beside it.
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(event);
    }

    /// Takes what was told so far.
    #[must_use]
    pub fn drain_events(&self) -> Vec<LayerEvent> {
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told)
    }

    /// The same context with an empty list of news of its own, so that what a failed hook told can be dropped.
    #[must_use]
    pub(crate) fn fork(&self) -> Self {
        Self {
            events: Arc::default(),
            ..self.clone()
        }
    }

    /// Takes over what was told apart.
    pub(crate) fn merge_events(&self, apart: &Self) {
        let news = apart.drain_events();
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(news);
    }
}
