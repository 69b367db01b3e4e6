//! Reading layers' states, and storing those outside the tree.
//!
//! A state of the path or of a run is a value at the head, and goes out with an append. One of a resource or of the
//! owner is a versioned value beside the tree, replaced by compare-and-set: where another was faster, the hook runs
//! again on what is there now, so no update is lost.
//!
//! Not here: what hooks do (`layer_session`).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{NodeId, RunId};
use contexture_layers::{HookContext, LayerId, LayerStates, Layers, Scope, Stored};
use contexture_store::{Appended, At, Error as StoreError, Expected, KeyScope, PutEntry, State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::events::Happened;
use crate::layer_calls::{SharedAs, SharedCall};
use crate::layer_host::EngineHost;
use crate::layer_session::{LayerSession, tree_key};
use crate::ledger::Ledger;
use crate::path::Path;

/// How often a change of states is made again on what another stored meanwhile. Each time somebody got through.
pub(crate) const TRIES: usize = 100;

/// The run whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// The run.
    pub id: RunId,
    /// How many ancestors it has.
    pub depth: u32,
}

/// A hook that changes states, as it can be run again on newer ones.
#[async_trait]
pub(crate) trait Again: Send {
    async fn run(
        &mut self,
        layers: &Layers,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<(), EngineError>;

    /// The call it is, and what it gave, where it is one that must not be made twice.
    fn call(&self) -> Option<SharedCall> {
        None
    }
}

/// How many of the last calls a state outside the tree remembers.
const CALLS: usize = 8;

/// A state outside the tree, as it is stored.
#[derive(Serialize, Deserialize)]
struct Shared {
    version: u32,
    state: Box<RawValue>,
    /// The last calls that changed it, so that none of them is made twice: a run stores their outputs afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<SharedCall>,
}

/// Where a path stands, for layers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) head: Option<NodeId>,
    pub(crate) turns: u64,
    pub(crate) responses: u64,
}

impl Standing {
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            head: path.head,
            turns: path.nodes.last().map_or(0, |node| node.turns),
            responses: path.responses(),
        }
    }
}

impl Conversation {
    /// The layers at this branch's head, for a run or for none.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session(&self, run: Option<RunPlace>) -> Result<LayerSession, EngineError> {
        self.layer_session_at(self.here(), run).await
    }

    /// The layers of a child run on this handle's branch, which go on from what its parent's have.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn child_session(
        &self,
        run: RunPlace,
        parent: &LayerSession,
    ) -> Result<LayerSession, EngineError> {
        let (standing, state) = self.standing_at(self.here()).await?;
        let mut session = self.session_as_stored(standing, &state, Some(run)).await?;
        parent.spawn_into(&mut session).await?;
        session.init().await?;
        Ok(session)
    }

    /// The layers somewhere on the conversation's tree, for a run or for none.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session_at(
        &self,
        at: At,
        run: Option<RunPlace>,
    ) -> Result<LayerSession, EngineError> {
        let (standing, state) = self.standing_at(at).await?;
        self.session_at(standing, &state, run).await
    }

    /// Where a path stands, and the state there.
    async fn standing_at(&self, at: At) -> Result<(Standing, State), EngineError> {
        let path = self.whole_path(at.clone()).await?;
        let state = self.state_at(path.head.map_or(at, At::Node), "").await?;
        Ok((Standing::of(&path), state))
    }

    /// Counts what layers ask of a model from now on.
    pub fn count_in(&self, session: &mut LayerSession, ledger: Arc<dyn Ledger>) {
        let (engine, owner) = (self.engine().clone(), self.owner().clone());
        let host = EngineHost::new(engine, owner, Some(Arc::clone(&ledger)));
        session.context.host = Arc::new(host);
        session.ledger = Some(ledger);
    }

    /// What hooks changed is on the tree with this append: stores the rest, and tells what they told. `again` is the
    /// hook, for states that another changed meanwhile.
    pub(crate) async fn settle(
        &self,
        session: &mut LayerSession,
        appended: &Appended,
        again: &mut dyn Again,
    ) -> Result<(), EngineError> {
        if appended.replayed {
            // It was all stored the first time.
            let run = session.context.run.map(|id| RunPlace {
                id,
                depth: session.context.depth,
            });
            let ledger = session.ledger.take();
            *session = self.layer_session_at(self.here(), run).await?;
            if let Some(ledger) = ledger {
                self.count_in(session, ledger);
            }
            return Ok(());
        }
        self.put_shared(session, again).await?;
        session.states.settle();
        session.context.head = appended.head;
        session.context.turns = appended.turns;
        session.context.now_ms = self.engine().now_ms();
        self.tell_layers(session);
        Ok(())
    }

    /// Tells those who watch what layers told.
    pub(crate) fn tell_layers(&self, session: &LayerSession) {
        for event in session.take_told() {
            self.tell(|| Happened::Layer(event));
        }
    }

    pub(crate) async fn session_at(
        &self,
        standing: Standing,
        state: &State,
        run: Option<RunPlace>,
    ) -> Result<LayerSession, EngineError> {
        let mut session = self.session_as_stored(standing, state, run).await?;
        session.init().await?;
        Ok(session)
    }

    async fn session_as_stored(
        &self,
        standing: Standing,
        state: &State,
        run: Option<RunPlace>,
    ) -> Result<LayerSession, EngineError> {
        let layers = self.layers();
        let resource = match layers.is_empty() {
            true => None,
            false => self.resource().await?,
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
            let found = match tree_key(spec.scope, &spec.id, context.run)? {
                Some(key) => state.root.get(&key).and_then(|entry| {
                    let bytes = state.value(&key)?;
                    Some(Stored {
                        version: entry.version,
                        bytes: Arc::clone(bytes),
                    })
                }),
                None => {
                    let (found, read) = self.shared(&context, spec.scope, &spec.id).await?;
                    shared.insert(spec.id.clone(), read);
                    found
                }
            };
            stored.extend(found.map(|found| (spec.id.clone(), found)));
        }
        Ok(LayerSession {
            states: layers.states(stored),
            layers,
            context,
            shared,
            outcomes: Vec::new(),
            ledger: None,
        })
    }

    /// A state outside the tree, and how it was read.
    async fn shared(
        &self,
        context: &HookContext,
        scope: Scope,
        layer: &LayerId,
    ) -> Result<(Option<Stored>, SharedAs), EngineError> {
        let (scope, key) = (key_scope(context, scope), key(layer));
        let entry = self.store().entry(self.owner(), &scope, &key).await?;
        let Some(entry) = entry else {
            return Ok((None, SharedAs::default()));
        };
        let read: Shared =
            serde_json::from_slice(&entry.value).map_err(|error| EngineError::StoredState {
                key,
                why: error.to_string(),
            })?;
        let stored = Stored {
            version: read.version,
            bytes: read.state.get().as_bytes().into(),
        };
        let read = SharedAs {
            version: Some(entry.version),
            calls: read.calls,
        };
        Ok((Some(stored), read))
    }

    /// Stores the changed states outside the tree. Where another was faster, `again` is run on that layer alone.
    pub(crate) async fn put_shared(
        &self,
        session: &mut LayerSession,
        again: &mut dyn Again,
    ) -> Result<(), EngineError> {
        for changed in session.layers.changed(&session.states) {
            if changed.scope.on_tree() {
                continue;
            }
            let (scope, id) = (changed.scope, changed.layer);
            let only = session.layers.only(&id)?;
            let mut now = changed.now;
            let mut read = session.shared.get(&id).cloned().unwrap_or_default();
            for left in (0..TRIES).rev() {
                read.calls.extend(again.call());
                let surplus = read.calls.len().saturating_sub(CALLS);
                read.calls.drain(..surplus);
                match self
                    .put_one(&session.context, scope, &id, &now, &read)
                    .await
                {
                    Ok(stored) => {
                        read.version = Some(stored);
                        session.shared.insert(id.clone(), read);
                        session.layers.reread(&mut session.states, &id, Some(now))?;
                        break;
                    }
                    Err(EngineError::Store(StoreError::VersionConflict { .. })) if left > 0 => {
                        let (stored, newer) = self.shared(&session.context, scope, &id).await?;
                        let kept = stored.clone().map(|stored| (id.clone(), stored));
                        let mut states = only.states(kept);
                        only.init(&mut states, &session.context).await?;
                        again.run(&only, &mut states, &session.context).await?;
                        read = newer;
                        match only.changed(&states).pop() {
                            Some(changed) => now = changed.now,
                            // What is there says it already.
                            None => {
                                session.shared.insert(id.clone(), read);
                                session.layers.reread(&mut session.states, &id, stored)?;
                                break;
                            }
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    async fn put_one(
        &self,
        context: &HookContext,
        scope: Scope,
        layer: &LayerId,
        now: &Stored,
        read: &SharedAs,
    ) -> Result<u64, EngineError> {
        let key = key(layer);
        let broken = |why: String| EngineError::StoredState {
            key: key.clone(),
            why,
        };
        let text = std::str::from_utf8(&now.bytes).map_err(|error| broken(error.to_string()))?;
        let state =
            RawValue::from_string(text.to_owned()).map_err(|error| broken(error.to_string()))?;
        let shared = Shared {
            version: now.version,
            state,
            calls: read.calls.clone(),
        };
        let value = serde_json::to_vec(&shared).map_err(|error| broken(error.to_string()))?;
        let put = PutEntry {
            key: key.clone(),
            value: Some(value.into()),
            expect: read.version.map_or(Expected::Absent, Expected::Version),
            at_ms: self.engine().now_ms(),
        };
        let scope = key_scope(context, scope);
        Ok(self.store().put_entry(self.owner(), &scope, put).await?)
    }
}

fn key(layer: &LayerId) -> String {
    format!("layers/{layer}")
}

fn key_scope(context: &HookContext, scope: Scope) -> KeyScope {
    match (scope, &context.resource) {
        (Scope::Resource, Some(resource)) => KeyScope::Resource(resource.clone()),
        (Scope::Global, _) => KeyScope::Owner,
        _ => KeyScope::Conversation(context.conversation.clone()),
    }
}
