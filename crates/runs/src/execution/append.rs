//! Appending to a run's branch: what was said, as layers let it in, and changes of state.
//!
//! Where another changed a layer's state meanwhile, the states are read again and layers are asked again. Not here:
//! answers of models (`ask`), outputs of calls (`outputs`).

use contexture_engine::{StepAppend, state_node};
use contexture_ir::{Item, NodeId};
use contexture_store::{AppendPoint, NewItem, StateChange};

use crate::error::RunError;
use crate::execution::live_run::LiveRun;
use crate::record::{node_id, nth_node_id};

/// How often an append is made again where another changed a layer's state. Each time somebody got through.
const MAX_APPEND_CONFLICTS: usize = 100;

/// Items that are appended as one.
#[derive(Debug, Default)]
pub(crate) struct AppendBatch {
    /// As they are stored.
    pub(crate) nodes: Vec<NewItem>,
    /// As layers see them.
    pub(crate) items: Vec<Item>,
}

impl LiveRun {
    /// Items of this step, as they are stored and as layers see them. Where layers have left none, a node that says
    /// nothing carries what they make of it.
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
        if nodes.is_empty() {
            nodes.push(self.state_only_node(first)?);
        }
        Ok(AppendBatch { nodes, items })
    }

    /// A node of this step that says nothing.
    fn state_only_node(&self, id: NodeId) -> Result<NewItem, RunError> {
        let step = self.run_step();
        Ok(NewItem {
            run: Some(step.run),
            step: Some(step.step),
            ..state_node(id, self.chat.engine().now_ms())?
        })
    }

    /// A change of state without an item.
    pub(crate) async fn append_state(
        &mut self,
        of: &str,
        changes: Vec<StateChange>,
    ) -> Result<(), RunError> {
        let which = format!(
            "{}/{}",
            self.step,
            self.session
                .context()
                .head
                .map_or_else(String::new, |head| head.to_string())
        );
        let id = node_id(self.id, of, which.as_bytes());
        let node = self.state_only_node(id)?;
        self.append_node(node, changes).await
    }

    /// Appends a node that says nothing.
    pub(crate) async fn append_node(
        &mut self,
        node: NewItem,
        changes: Vec<StateChange>,
    ) -> Result<(), RunError> {
        let said = AppendBatch {
            nodes: vec![node],
            items: Vec::new(),
        };
        while !self.try_append(&said, changes.clone()).await? {}
        Ok(())
    }

    /// Appends what was said, as layers let it in; gives what that is.
    pub(crate) async fn append_items(
        &mut self,
        items: Vec<Item>,
        changes: Vec<StateChange>,
        place: impl Fn(&Self, Vec<Item>) -> Result<AppendBatch, RunError>,
    ) -> Result<Vec<Item>, RunError> {
        loop {
            let items = self.session.on_append(items.clone()).await?;
            let said = place(self, items)?;
            if self.try_append(&said, changes.clone()).await? {
                return Ok(said.items);
            }
        }
    }

    /// Appends; `false` where another changed a layer's state meanwhile: then the states are read again, and what
    /// layers were asked before they have to be asked again; what they were told they are told.
    pub(crate) async fn try_append(
        &mut self,
        said: &AppendBatch,
        changes: Vec<StateChange>,
    ) -> Result<bool, RunError> {
        let step = StepAppend {
            at: AppendPoint::Tip {
                branch: self.chat.branch(),
            },
            items: said.nodes.clone(),
            said: said.items.clone(),
            changes,
        };
        match self.chat.append_step(step, &mut self.session).await {
            Err(error) => {
                self.retry_on_conflict(error.into()).await?;
                Ok(false)
            }
            Ok(_) => {
                self.append_conflicts = 0;
                Ok(true)
            }
        }
    }

    /// Reads the layers' states again where that is what an append failed for; any other error is given back.
    pub(crate) async fn retry_on_conflict(&mut self, error: RunError) -> Result<(), RunError> {
        match error {
            RunError::Engine(error)
                if error.is_stale_state() && self.append_conflicts < MAX_APPEND_CONFLICTS =>
            {
                self.append_conflicts += 1;
                Ok(self.chat.refresh_session(&mut self.session).await?)
            }
            error => Err(error),
        }
    }
}
