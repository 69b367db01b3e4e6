//! The end of a run: layers are told, its entries go off the tree, and lists say how it ended.

use contexture_store::StateChange;

use super::children::run_end;
use super::entry::{RunEntry, RunStatus};
use super::event::RunNews;
use super::run::Run;
use crate::error::RunError;

impl Run {
    /// Ends the run. Done twice, it does nothing new.
    pub(crate) async fn end(
        &mut self,
        status: RunStatus,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        self.session.on_complete(&run_end(error)).await;
        self.session.dispose().await;
        let changed = !self
            .session
            .tree_changes()
            .map_err(RunError::from)?
            .is_empty();
        if changed {
            self.note("complete", Vec::new()).await?;
        }
        let state = self.run_state().await?;
        let gone: Vec<StateChange> = state
            .root
            .keys()
            .cloned()
            .map(StateChange::remove)
            .collect();
        if !gone.is_empty() {
            self.note("end", gone).await?;
        }
        let why = error.map(ToString::to_string);
        self.store_status(status, why).await?;
        if self.record.depth == 0 {
            self.channels.close();
        }
        let spent = self.spent();
        self.tell(|| RunNews::Ended { spent });
        Ok(())
    }

    /// Stores how the run stands, for lists.
    pub(crate) async fn store_status(
        &self,
        status: RunStatus,
        why: Option<String>,
    ) -> Result<(), RunError> {
        let open = status.is_open();
        let entry = RunEntry {
            status,
            ended_ms: (!open).then(|| self.chat.engine().now_ms()),
            spent: Some(self.spent()),
            result: self.last_text.clone().filter(|_| !open),
            why,
            ..RunEntry::new(self.id, &self.record, &self.chat.branch())
        };
        entry.put(&self.chat, self.id).await?;
        Ok(())
    }
}
