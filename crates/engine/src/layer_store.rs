//! Reading layers' states, and going on from them once they are stored.
//!
//! A state of the path or of a run is a value at the head; one of a resource or of the owner is a versioned value beside
//! the tree. Both go out with an append, by compare-and-set, so no update is lost (`appending`).
//!
//! Not here: what hooks do (`layer_session`).

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{NodeId, RunId};
use contexture_layers::{HookContext, LayerId, StoredState};
use contexture_store::{Appended, NodeState, PathEnd};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::events::EngineEventKind;
use crate::layer_host::EngineHost;
use crate::layer_session::{LayerSession, tree_state_key};
use crate::layer_shared::{decode_shared_state, shared_key, shared_scope};
use crate::ledger::SideUsageTracker;
use crate::path::StoredPath;

/// How often a change of states is made again on what another stored meanwhile. Each time somebody got through.
pub(crate) const TRIES: usize = 100;

/// The run whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunScope {
    /// The run.
    pub id: RunId,
    /// How many ancestors it has.
    pub depth: u32,
}

/// Where a path stands, for layers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionPosition {
    pub(crate) head: Option<NodeId>,
    pub(crate) turns: u64,
    pub(crate) responses: u64,
}

impl SessionPosition {
    pub(crate) fn from_path(path: &StoredPath) -> Self {
        Self {
            head: path.head,
            turns: path.nodes.last().map_or(0, |node| node.turns),
            responses: path.response_count(),
        }
    }
}

impl Conversation {
    /// The layers at this branch's head, for a run or for none.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session(&self, run: Option<RunScope>) -> Result<LayerSession, EngineError> {
        self.layer_session_at(self.current_position(), run).await
    }

    /// The layers of a child run on this handle's branch, which go on from what its parent's have.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn child_session(
        &self,
        run: RunScope,
        parent: &LayerSession,
    ) -> Result<LayerSession, EngineError> {
        let (standing, state) = self.load_position(self.current_position()).await?;
        let mut session = self
            .load_stored_session(standing, &state, Some(run))
            .await?;
        parent.spawn_into(&mut session).await?;
        session.init_states().await?;
        Ok(session)
    }

    /// The layers somewhere on the conversation's tree, for a run or for none.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session_at(
        &self,
        at: PathEnd,
        run: Option<RunScope>,
    ) -> Result<LayerSession, EngineError> {
        let (standing, state) = self.load_position(at).await?;
        self.load_session(standing, &state, run).await
    }

    /// Where a path stands, and the state there.
    pub(crate) async fn load_position(
        &self,
        at: PathEnd,
    ) -> Result<(SessionPosition, NodeState), EngineError> {
        let path = self.read_full_path(at.clone()).await?;
        let state = self
            .state_at(path.head.map_or(at, PathEnd::Node), "")
            .await?;
        Ok((SessionPosition::from_path(&path), state))
    }

    /// Counts what layers ask of a model from now on.
    pub fn track_side_usage(&self, session: &mut LayerSession, ledger: Arc<dyn SideUsageTracker>) {
        let (engine, owner) = (self.engine().clone(), self.owner().clone());
        let host = EngineHost::new(engine, owner, Some(Arc::clone(&ledger)));
        session.context.host = Arc::new(host);
        session.ledger = Some(ledger);
    }

    /// What hooks changed is stored with this append, and of states outside the tree those of `shared`: goes on from
    /// there, and tells what they told.
    pub(crate) async fn mark_committed(
        &self,
        session: &mut LayerSession,
        appended: &Appended,
        shared: Vec<LayerId>,
    ) -> Result<(), EngineError> {
        session.hook_log.clear();
        if appended.replayed {
            // It was all stored the first time.
            return self.refresh_session(session).await;
        }
        let versions = appended.versions.iter().copied().map(Some);
        session.shared.extend(shared.into_iter().zip(versions));
        session.states.mark_committed();
        session.context.head = appended.head;
        session.context.turns = appended.turns;
        session.context.now_ms = self.engine().now_ms();
        self.publish_layer_events(session);
        Ok(())
    }

    /// Tells those who watch what layers told.
    pub(crate) fn publish_layer_events(&self, session: &LayerSession) {
        for event in session.drain_events() {
            self.publish(|| EngineEventKind::Layer(event));
        }
    }

    pub(crate) async fn load_session(
        &self,
        standing: SessionPosition,
        state: &NodeState,
        run: Option<RunScope>,
    ) -> Result<LayerSession, EngineError> {
        let mut session = self.load_stored_session(standing, state, run).await?;
        session.init_states().await?;
        Ok(session)
    }

    pub(crate) async fn load_stored_session(
        &self,
        standing: SessionPosition,
        state: &NodeState,
        run: Option<RunScope>,
    ) -> Result<LayerSession, EngineError> {
        let layers = self.layers();
        let resource = match layers.is_empty() {
            true => None,
            false => self.load_resource().await?,
        };
        let mut context = HookContext::new(self.owner().clone(), self.id().clone(), self.branch());
        context.resource = resource;
        context.head = standing.head;
        context.turns = standing.turns;
        context.responses = standing.responses;
        context.run = run.map(|run| run.id);
        context.depth = run.map_or(0, |run| run.depth);
        context.now_ms = self.engine().now_ms();
        context.host = Arc::new(EngineHost::new(
            self.engine().clone(),
            self.owner().clone(),
            None,
        ));

        let mut stored = Vec::new();
        let mut shared = BTreeMap::new();
        for spec in layers.specs() {
            let found = match tree_state_key(spec.scope, &spec.id, context.run)? {
                Some(key) => state.root.get(&key).and_then(|entry| {
                    let bytes = state.loaded_value(&key)?;
                    Some(StoredState {
                        version: entry.version,
                        bytes: Arc::clone(bytes),
                    })
                }),
                None => {
                    let (scope, key) = (shared_scope(&context, spec.scope), shared_key(&spec.id));
                    let entry = self.store().get_entry(self.owner(), &scope, &key).await?;
                    let version = entry.as_ref().map(|entry| entry.version);
                    shared.insert(spec.id.clone(), version);
                    entry.as_ref().map(decode_shared_state).transpose()?
                }
            };
            stored.extend(found.map(|found| (spec.id.clone(), found)));
        }
        Ok(LayerSession {
            states: layers.restore_states(stored),
            layers,
            context,
            shared,
            hook_log: Vec::new(),
            outcomes: Vec::new(),
            ledger: None,
        })
    }
}
