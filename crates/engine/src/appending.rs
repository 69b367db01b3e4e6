//! Appending what layers see: items of people, tools, runs.
//!
//! Not here: answers of models (`record`), what is new in a message (`save`).

use contexture_ir::{Item, NodeId, meaning_hash};
use contexture_layers::{LayerId, ObservedItems};
use contexture_store::{
    AppendPoint, AppendRequest, Appended, Error, NewItem, NodeState, PathEnd, StateChange,
    StatePatch,
};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::layer_session::LayerSession;
use crate::layer_store::{SessionPosition, TRIES};
use crate::record::RunStep;

/// Items of a run's step, to be stored in one transaction.
#[derive(Debug)]
pub struct StepAppend {
    /// Where.
    pub at: AppendPoint,
    /// The items, as [`Conversation::new_item`] makes them.
    pub items: Vec<NewItem>,
    /// The same, as layers see them.
    pub said: Vec<Item>,
    /// Changes of state beside those of layers.
    pub changes: Vec<StateChange>,
}

impl Conversation {
    /// An item as it is stored: secrets taken out, its meaning hashed.
    #[must_use]
    pub fn new_item(&self, id: NodeId, item: &Item, step: Option<RunStep>) -> NewItem {
        let secrets = self.engine().secrets();
        let json = match secrets {
            Some(secrets) => secrets.redact_item(item).to_json(),
            None => item.to_json(),
        };
        NewItem {
            run: step.map(|step| step.run),
            step: step.map(|step| step.step),
            meaning_hash: meaning_hash(item),
            ..NewItem::new(id, item, json, self.engine().now_ms())
        }
    }

    /// Appends items of a step, with what its layers have changed and make of them.
    ///
    /// # Errors
    /// One that [is about a stale state](EngineError::is_stale_state) where somebody else changed a layer's state since
    /// the session was read: read it [again](Self::refresh_session) and repeat what layers were asked; [`EngineError::Layers`] for a layer that must not fail; or the store's.
    pub async fn append_step(
        &self,
        step: StepAppend,
        session: &mut LayerSession,
    ) -> Result<Appended, EngineError> {
        let StepAppend {
            at,
            items,
            said,
            changes,
        } = step;
        self.append_items(at, items, &said, changes, Some(session))
            .await
    }

    /// The layers where items go.
    pub(crate) async fn layer_session_for_append(
        &self,
        at: &AppendPoint,
    ) -> Result<LayerSession, EngineError> {
        let at = match at {
            AppendPoint::Head { branch, .. } | AppendPoint::Tip { branch } => {
                PathEnd::Branch(branch.clone())
            }
            AppendPoint::New(new) => match new.base {
                Some(base) => PathEnd::Node(base),
                None => {
                    let (standing, state) = (SessionPosition::default(), NodeState::default());
                    return self.load_session(standing, &state, None).await;
                }
            },
        };
        self.layer_session_at(at, None).await
    }

    pub(crate) async fn append_items(
        &self,
        at: AppendPoint,
        items: Vec<NewItem>,
        said: &[Item],
        changes: Vec<StateChange>,
        session: Option<&mut LayerSession>,
    ) -> Result<Appended, EngineError> {
        let nodes: Vec<NodeId> = items.iter().map(|item| item.id).collect();
        let mut request = AppendRequest::new(at, items, self.engine().now_ms());
        request.patch = StatePatch { changes, from: 0 };
        let seen = ObservedItems {
            items: said,
            nodes: &nodes,
            response: None,
            usage: None,
        };
        self.append_with_hooks(request, seen, session).await
    }

    /// Appends, with what layers make of it in the same transaction.
    pub(crate) async fn append_with_hooks(
        &self,
        mut request: AppendRequest,
        seen: ObservedItems<'_>,
        session: Option<&mut LayerSession>,
    ) -> Result<Appended, EngineError> {
        let Some(session) = session else {
            return self.append(request).await;
        };
        session.observe(seen).await?;
        let mut changes = session.tree_changes()?;
        let ledger = session.ledger.clone();
        changes.extend(ledger.as_ref().and_then(|ledger| ledger.pending_change()));
        // What the append itself says of a key counts.
        let said = &request.patch.changes;
        changes.retain(|change| !said.iter().any(|said| said.key == change.key));
        request.patch.changes.extend(changes);
        let shared = session.shared_changes(request.at_ms)?;
        let (shared, entries): (Vec<LayerId>, Vec<_>) = shared.into_iter().unzip();
        // Versions are told in the order of entries: those of layers come first.
        request.entries.splice(0..0, entries);
        let appended = self.append(request).await?;
        // What is stored on another branch is not stored here.
        if let Some(ledger) = ledger.filter(|_| !appended.sibling) {
            ledger.mark_stored();
        }
        if seen.response.is_some() {
            session.context.responses += 1;
        }
        self.mark_committed(session, &appended, shared).await?;
        Ok(appended)
    }

    /// Appends what came from elsewhere, shown to the layers at `base`: again, where another changed a state of theirs
    /// meanwhile.
    pub(crate) async fn append_with_retries(
        &self,
        request: AppendRequest,
        seen: ObservedItems<'_>,
        base: PathEnd,
    ) -> Result<Appended, EngineError> {
        if self.layers().is_empty() {
            return self.append(request).await;
        }
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let mut session = self.layer_session_at(base.clone(), None).await?;
            let appended = self.append_with_hooks(request.clone(), seen, Some(&mut session));
            match appended.await {
                Err(error)
                    if tries > 0
                        && error.is_stale_state()
                        && !is_request_conflict(&request, &error) => {}
                appended => return appended,
            }
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
