//! The end of a run: layers are told, its entries go off the tree, and lists say how it ended.

use std::collections::BTreeSet;

use contexture_ir::NodeId;
use contexture_store::{NewItem, StateChange, StateKey};

use super::children::run_end;
use super::ended::StoredRunEnd;
use super::entry::{RunEntry, RunStatus};
use super::event::RunEventKind;
use super::keys::side_usage_key;
use super::run::Run;
use crate::error::RunError;

impl Run {
    /// Ends the run. Done twice, it does nothing new.
    pub(crate) async fn finish_run(
        &mut self,
        status: RunStatus,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        self.session.on_complete(&run_end(error)).await;
        self.session.dispose().await;
        let state = self.load_run_state().await?;
        let mut gone: BTreeSet<StateKey> = state.root.keys().cloned().collect();
        // What layers ask at the end is in the figures.
        gone.insert(side_usage_key(self.id)?);
        let gone = gone.into_iter().map(StateChange::remove_entry).collect();
        let ended = StoredRunEnd {
            status,
            ended_ms: self.chat.engine().now_ms(),
            spent: Some(self.usage()),
            result: self.last_text.clone(),
            value: self.value.clone(),
            why: error.map(ToString::to_string),
        };
        let why = ended.why.clone();
        let step = self.run_step();
        let node = NewItem {
            run: Some(step.run),
            step: Some(step.step),
            ..ended.to_end_node(self.id)?
        };
        self.append_node(node, gone).await?;
        let entry = RunEntry::new(self.id, &self.record, &self.chat.branch());
        ended
            .apply_to_entry(entry)
            .store_entry(&self.chat, self.id)
            .await?;
        if self.record.depth == 0 {
            self.channels.close();
        }
        let spent = self.usage();
        self.notify_observer(|| RunEventKind::Ended { status, why, spent });
        Ok(())
    }

    /// Stores that the run waits for these calls, for lists.
    pub(crate) async fn store_waiting(&self, calls: &[NodeId]) -> Result<(), RunError> {
        let entry = RunEntry {
            status: RunStatus::Waiting,
            spent: Some(self.usage()),
            waiting: calls.iter().map(ToString::to_string).collect(),
            ..RunEntry::new(self.id, &self.record, &self.chat.branch())
        };
        entry.store_entry(&self.chat, self.id).await?;
        Ok(())
    }
}
