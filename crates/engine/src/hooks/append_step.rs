//! Appending with hooks: items that layers observe, and their changes of state, in one transaction.
//!
//! Not here: answers of models (`record`), which messages are new (`draft`).

use contexture_ir::{Item, NodeId};
use contexture_layers::{LayerId, ObservedItems};
use contexture_store::{
    AppendPoint, AppendRequest, Appended, Error, NewItem, NodeState, PathEnd, StateChange,
    StatePatch,
};

use super::open_session::{
    STALE_STATE_TRIES, SessionPosition, load_session, mark_committed, open_session_at,
};
use super::session::LayerSession;
use crate::append::append_with_copies;
use crate::error::EngineError;
use crate::handle::Conversation;

/// Items of a run's step, to be stored in one transaction.
#[derive(Debug)]
pub struct StepAppend {
    /// The place to append at.
    pub point: AppendPoint,
    /// The items, as [`Conversation::new_item`] makes them.
    pub items: Vec<NewItem>,
    /// The same items as layers see them.
    pub layer_items: Vec<Item>,
    /// Changes of state beside those of layers.
    pub changes: Vec<StateChange>,
}

/// Appends items of a run's step together with the changes of its layers.
pub(crate) async fn append_step(
    chat: &Conversation,
    step: StepAppend,
    session: &mut LayerSession,
) -> Result<Appended, EngineError> {
    let StepAppend {
        point: at,
        items,
        layer_items: said,
        changes,
    } = step;
    append_items(chat, at, items, &said, changes, Some(session)).await
}

/// The layers where items go.
pub(crate) async fn open_session_for_append(
    chat: &Conversation,
    at: &AppendPoint,
) -> Result<LayerSession, EngineError> {
    let at = match at {
        AppendPoint::Head { branch, .. } | AppendPoint::Tip { branch } => {
            PathEnd::Branch(branch.clone())
        }
        AppendPoint::New(new) => match new.base {
            Some(base) => PathEnd::Node(base),
            None => {
                // A new root: no path and no state to read.
                let (standing, state) = (SessionPosition::default(), NodeState::default());
                return load_session(chat, standing, &state, None).await;
            }
        },
    };
    open_session_at(chat, at, None).await
}

pub(crate) async fn append_items(
    chat: &Conversation,
    at: AppendPoint,
    items: Vec<NewItem>,
    observed: &[Item],
    changes: Vec<StateChange>,
    session: Option<&mut LayerSession>,
) -> Result<Appended, EngineError> {
    let nodes: Vec<NodeId> = items.iter().map(|item| item.id).collect();
    let mut request = AppendRequest::new(at, items, chat.engine().now_ms());
    request.patch = StatePatch { changes, from: 0 };
    let seen = ObservedItems {
        items: observed,
        nodes: &nodes,
        response: None,
        usage: None,
    };
    append_with_hooks(chat, request, seen, session).await
}

/// Appends, with what layers make of it in the same transaction.
pub(crate) async fn append_with_hooks(
    chat: &Conversation,
    mut request: AppendRequest,
    seen: ObservedItems<'_>,
    session: Option<&mut LayerSession>,
) -> Result<Appended, EngineError> {
    let Some(session) = session else {
        return append_with_copies(chat, request).await;
    };
    // Before the changes are collected: what the layers note about these items is stored with them. A node that only carries
    // state shows them nothing.
    if !seen.items.is_empty() || seen.response.is_some() {
        session.observe(seen).await?;
    }
    let mut changes = session.tree_changes()?;
    let tracker = session.tracker.clone();
    changes.extend(
        tracker
            .as_ref()
            .and_then(|tracker| tracker.pending_change()),
    );
    // What the append itself says of a key counts.
    let own_changes = &request.patch.changes;
    changes.retain(|change| !own_changes.iter().any(|own| own.key == change.key));
    request.patch.changes.extend(changes);
    // In the same transaction as the items: either all of it is stored, or the session is stale as a whole.
    let shared = session.shared_changes(request.at_ms)?;
    let (shared, entries): (Vec<LayerId>, Vec<_>) = shared.into_iter().unzip();
    // Versions are told in the order of entries: those of layers come first.
    request.entries.splice(0..0, entries);
    let appended = append_with_copies(chat, request).await?;
    // What is stored on another branch is not stored here.
    if let Some(tracker) = tracker.filter(|_| !appended.on_sibling_branch) {
        tracker.mark_stored();
    }
    // The session counts answers itself: reading the path again for it would cost a read per step.
    if seen.response.is_some() {
        session.context.responses += 1;
    }
    mark_committed(chat, session, &appended, shared).await?;
    Ok(appended)
}

/// Appends what came from elsewhere, shown to the layers at `base`: again, where another changed a state of theirs
/// meanwhile.
pub(crate) async fn append_with_retries(
    chat: &Conversation,
    request: AppendRequest,
    seen: ObservedItems<'_>,
    base: PathEnd,
) -> Result<Appended, EngineError> {
    if chat.layers().is_empty() {
        return append_with_copies(chat, request).await;
    }
    let mut tries = STALE_STATE_TRIES;
    loop {
        tries -= 1;
        // Opened anew in every round: only the states that are stored now can be compared and replaced.
        let mut session = open_session_at(chat, base.clone(), None).await?;
        let appended = append_with_hooks(chat, request.clone(), seen, Some(&mut session));
        match appended.await {
            // A conflict about an entry that the caller sent is not ours to repeat: the caller must read it again.
            Err(error)
                if tries > 0
                    && error.is_stale_state()
                    && !is_request_conflict(&request, &error) => {}
            appended => return appended,
        }
    }
}

/// Whether it is about an entry that came with the request: whoever wrote that reads it again.
fn is_request_conflict(request: &AppendRequest, error: &EngineError) -> bool {
    let EngineError::Store(Error::VersionConflict { name, .. }) = error else {
        return false;
    };
    request.entries.iter().any(|(_, put)| put.key == *name)
}
