//! Appends to a run's branch: items, after layers were asked about them, and changes of state.
//!
//! Layer states use optimistic locking: after a conflict the states are read again, layers are asked again, and the
//! append is repeated. Not here: answers of models and outputs of calls (`crate::steps`).

use contexture_engine::{StepAppend, state_node};
use contexture_ir::{Audience, Item, Message, NodeId, Origin, Role};
use contexture_store::{AppendPoint, NewItem, StateChange};

use crate::error::RunError;
use crate::execution::live_run::LiveRun;
use crate::record::{node_id, nth_node_id};

/// Retries of an append whose layer state was stale. Each conflict means that another writer succeeded, so the limit
/// only ends a livelock.
const MAX_APPEND_CONFLICTS: usize = 100;

/// Items that one append stores.
#[derive(Debug, Default)]
pub(crate) struct AppendBatch {
    /// The nodes to store.
    pub(crate) nodes: Vec<NewItem>,
    /// The same items as layers see them.
    pub(crate) items: Vec<Item>,
}

impl LiveRun {
    /// Builds the batch that stores these items in the current step.
    pub(crate) fn batch_of_items(
        &self,
        first: NodeId,
        items: Vec<Item>,
    ) -> Result<AppendBatch, RunError> {
        let step = Some(self.run_step());
        let new = items.iter().enumerate();
        let new =
            new.map(|(index, item)| self.chat.new_item(nth_node_id(first, index), item, step));
        let mut nodes: Vec<NewItem> = new.collect();
        // Layers may remove every item, but their state changes still need a node to be stored with.
        if nodes.is_empty() {
            nodes.push(self.state_only_node(first)?);
        }
        Ok(AppendBatch { nodes, items })
    }

    /// Builds a node of this step without content, to carry changes of state.
    fn state_only_node(&self, id: NodeId) -> Result<NewItem, RunError> {
        let step = self.run_step();
        Ok(NewItem {
            run: Some(step.run),
            step: Some(step.step),
            ..state_node(id, self.chat.engine().now_ms())?
        })
    }

    /// Appends changes of state without an item.
    pub(crate) async fn append_state(
        &mut self,
        of: &str,
        changes: Vec<StateChange>,
    ) -> Result<(), RunError> {
        // Step and head make the id unique within the run, and equal when a crashed append is repeated: the store
        // recognises the node and keeps one.
        let position = format!(
            "{}/{}",
            self.step,
            self.session
                .context()
                .head
                .map_or_else(String::new, |head| head.to_string())
        );
        let id = node_id(self.id, of, position.as_bytes());
        let node = self.state_only_node(id)?;
        self.append_node(node, changes).await
    }

    /// Builds the message that tells the model why its answer does not count. Only models see it.
    pub(crate) fn feedback_item(&self, id: NodeId, feedback: &str) -> NewItem {
        let item = Item::Message(Message::text(Role::Developer, feedback));
        NewItem {
            origin: Origin::Layer,
            audience: Audience::MODEL,
            ..self.chat.new_item(id, &item, Some(self.run_step()))
        }
    }

    /// Appends one node that layers are not asked about.
    pub(crate) async fn append_node(
        &mut self,
        node: NewItem,
        changes: Vec<StateChange>,
    ) -> Result<(), RunError> {
        let batch = AppendBatch {
            nodes: vec![node],
            items: Vec::new(),
        };
        // Bounded: after too many conflicts in a row `retry_on_conflict` returns the error.
        while !self.try_append(&batch, changes.clone()).await? {}
        Ok(())
    }

    /// Appends items after layers were asked about them, and returns them as layers changed them.
    pub(crate) async fn append_items(
        &mut self,
        items: Vec<Item>,
        changes: Vec<StateChange>,
        place: impl Fn(&Self, Vec<Item>) -> Result<AppendBatch, RunError>,
    ) -> Result<Vec<Item>, RunError> {
        loop {
            // Inside the loop: after a conflict, layers decide again on the newer states.
            let items = self.session.on_append(items.clone()).await?;
            let batch = place(self, items)?;
            if self.try_append(&batch, changes.clone()).await? {
                // As layers changed them, which is also how they are stored.
                return Ok(batch.items);
            }
        }
    }

    /// Appends once. Returns `false` if a layer's state was stale: the states were read again, and the caller has to ask
    /// layers again before the next attempt.
    pub(crate) async fn try_append(
        &mut self,
        batch: &AppendBatch,
        changes: Vec<StateChange>,
    ) -> Result<bool, RunError> {
        self.check_open()?;
        let step = StepAppend {
            // At the branch's tip, not at a fixed head: others may have appended meanwhile.
            point: AppendPoint::Tip {
                branch: self.chat.branch(),
            },
            items: batch.nodes.clone(),
            // Layers observe items and not nodes: this is the same content.
            layer_items: batch.items.clone(),
            changes,
        };
        match self.chat.append_step(step, &mut self.session).await {
            Err(error) => {
                self.retry_on_conflict(error.into()).await?;
                Ok(false)
            }
            Ok(appended) => {
                if appended.replayed {
                    self.check_current().await?;
                }
                self.append_conflicts = 0;
                Ok(true)
            }
        }
    }

    /// Reads the layers' states again after a stale-state conflict; returns any other error.
    pub(crate) async fn retry_on_conflict(&mut self, error: RunError) -> Result<(), RunError> {
        match error {
            RunError::Engine(error)
                if error.is_stale_state() && self.append_conflicts < MAX_APPEND_CONFLICTS =>
            {
                self.append_conflicts += 1;
                Ok(self.chat.refresh_session(&mut self.session).await?)
            }
            error => Err(error.or_superseded()),
        }
    }
}
