//! What is stored of a program's durable steps.
//!
//! Not here: running them ([`crate::Run::run_durable_step`]).

use contexture_ir::Raw;
use contexture_store::NewItem;

use super::live_run::LiveRun;
use crate::error::RunError;
use crate::record::{load_step_result, step_key, step_node_id, step_result_node};

/// Room for what is stored around a result.
const ENVELOPE_BYTES: usize = 4_096;

impl LiveRun {
    /// Loads the result of a step: the `time`th one of its name.
    pub(crate) async fn load_step_result(
        &self,
        name: &str,
        time: u32,
    ) -> Result<Option<Raw>, RunError> {
        let id = step_node_id(self.id, name, time);
        if let Some(stored) = load_step_result(&self.chat, id).await? {
            return Ok(Some(stored));
        }
        if self.record.has_step_nodes {
            return Ok(None);
        }
        // The run began when results were kept as state.
        let key = step_key(self.id, name, time)?;
        let stored = self.load_state_value(&key).await?;
        let raw = stored.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(raw.and_then(|json| Raw::parse(json).ok()))
    }

    /// Stores the result of a step.
    pub(crate) async fn store_step_result(
        &mut self,
        name: &str,
        time: u32,
        result: Raw,
    ) -> Result<(), RunError> {
        let (bytes, limit) = (
            result.get().len(),
            self.chat.engine().store().limits().item_bytes,
        );
        if bytes + 6 * name.len() + ENVELOPE_BYTES > limit {
            return Err(RunError::ItemMismatch {
                subject: format!("what step {name:?} gave"),
                expected: format!(
                    "at most {} bytes of JSON",
                    limit.saturating_sub(ENVELOPE_BYTES)
                ),
                found: format!("{bytes} bytes: give a reference to where it is kept"),
            });
        }
        let (id, now) = (
            step_node_id(self.id, name, time),
            self.chat.engine().now_ms(),
        );
        let step = self.run_step();
        let node = NewItem {
            run: Some(step.run),
            step: Some(step.step),
            ..step_result_node(id, name, result, now)?
        };
        self.append_node(node, Vec::new()).await
    }
}
