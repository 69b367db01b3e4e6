//! Opening layer sessions, and continuing from them after an append.
//!
//! The state of a path or a run is a value at the head; that of a resource or the owner is a versioned value beside the
//! tree. Both go out with an append, by compare-and-set, so no update is lost.
//!
//! Not here: running hooks (`session`).

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{NodeId, RunId};
use contexture_layers::{HookContext, LayerId, StoredState};
use contexture_store::{Appended, NodeState, PathEnd};

use super::host::EngineHost;
use super::replay::refresh_session;
use super::session::{LayerSession, tree_state_key};
use super::shared_state::{decode_shared_state, shared_key, shared_scope};
use crate::error::EngineError;
use crate::handle::{
    Conversation, EngineEventKind, SideUsageTracker, load_resource, load_state, read_full_path,
};
use crate::path::StoredPath;

/// How often a change of states is made again on what another stored meanwhile. Each time somebody got through.
pub(crate) const STALE_STATE_TRIES: usize = 100;

/// The run that a session belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunScope {
    /// Id of the run.
    pub id: RunId,
    /// How many ancestors it has.
    pub depth: u32,
}

/// The position of a session: head, turns and answers up to there.
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

/// Opens the layers at this branch's head, for a run or for none.
pub(crate) async fn open_session(
    chat: &Conversation,
    run: Option<RunScope>,
) -> Result<LayerSession, EngineError> {
    open_session_at(chat, chat.current_position(), run).await
}

/// Opens the layers of a child run on this handle's branch; their first states come from the parent's.
pub(crate) async fn open_child_session(
    chat: &Conversation,
    run: RunScope,
    parent: &LayerSession,
) -> Result<LayerSession, EngineError> {
    let (standing, state) = load_position(chat, chat.current_position()).await?;
    let mut session = load_stored_session(chat, standing, &state, Some(run)).await?;
    // Before `init_states`: a layer takes its first state from the parent where it has a hook for that.
    parent.spawn_into(&mut session).await?;
    session.init_states().await?;
    Ok(session)
}

/// Opens the layers at any place of the tree, for a run or for none.
pub(crate) async fn open_session_at(
    chat: &Conversation,
    at: PathEnd,
    run: Option<RunScope>,
) -> Result<LayerSession, EngineError> {
    let (standing, state) = load_position(chat, at).await?;
    load_session(chat, standing, &state, run).await
}

/// Where a path stands, and the state there.
pub(crate) async fn load_position(
    chat: &Conversation,
    at: PathEnd,
) -> Result<(SessionPosition, NodeState), EngineError> {
    let path = read_full_path(chat, at.clone()).await?;
    let state = load_state(chat, path.head.map_or(at, PathEnd::Node), "").await?;
    Ok((SessionPosition::from_path(&path), state))
}

/// Counts model calls of the session's layers with this tracker from now on.
pub(crate) fn track_side_usage(
    chat: &Conversation,
    session: &mut LayerSession,
    tracker: Arc<dyn SideUsageTracker>,
) {
    let host = EngineHost::new(chat, Some(Arc::clone(&tracker)));
    session.context.host = Arc::new(host);
    session.tracker = Some(tracker);
}

/// What hooks changed is stored with this append, and of states outside the tree those of `shared`: goes on from
/// there, and tells what they told.
pub(crate) async fn mark_committed(
    chat: &Conversation,
    session: &mut LayerSession,
    appended: &Appended,
    shared: Vec<LayerId>,
) -> Result<(), EngineError> {
    session.hook_log.clear();
    if appended.replayed {
        // It was all stored the first time.
        return refresh_session(chat, session).await;
    }
    // The versions stand in the order of the entries, those of layers first; the rest belong to the caller.
    let versions = appended.versions.iter().copied().map(Some);
    session.shared.extend(shared.into_iter().zip(versions));
    // From here on the states as stored are what the next change replaces.
    session.states.mark_committed();
    session.context.head = appended.head;
    session.context.turns = appended.turns;
    session.context.now_ms = chat.engine().now_ms();
    publish_layer_events(chat, session);
    Ok(())
}

/// Tells those who watch what layers told.
pub(crate) fn publish_layer_events(chat: &Conversation, session: &LayerSession) {
    for event in session.drain_events() {
        chat.publish(|| EngineEventKind::Layer(event));
    }
}

pub(crate) async fn load_session(
    chat: &Conversation,
    standing: SessionPosition,
    state: &NodeState,
    run: Option<RunScope>,
) -> Result<LayerSession, EngineError> {
    let mut session = load_stored_session(chat, standing, state, run).await?;
    session.init_states().await?;
    Ok(session)
}

pub(crate) async fn load_stored_session(
    chat: &Conversation,
    standing: SessionPosition,
    state: &NodeState,
    run: Option<RunScope>,
) -> Result<LayerSession, EngineError> {
    let layers = chat.layers();
    // One read of the record, saved where no layer could use it.
    let resource = match layers.is_empty() {
        true => None,
        false => load_resource(chat).await?,
    };
    let mut context = HookContext::new(chat.owner().clone(), chat.id().clone(), chat.branch());
    context.resource = resource;
    context.head = standing.head;
    context.turns = standing.turns;
    context.responses = standing.responses;
    context.run = run.map(|run| run.id);
    context.depth = run.map_or(0, |run| run.depth);
    context.now_ms = chat.engine().now_ms();
    context.host = Arc::new(EngineHost::new(chat, None));

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
            // Remembered even where there is no entry: then the first write must find none either.
            None => {
                let (scope, key) = (shared_scope(&context, spec.scope), shared_key(&spec.id));
                let entry = chat.store().get_entry(chat.owner(), &scope, &key).await?;
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
        tracker: None,
    })
}
