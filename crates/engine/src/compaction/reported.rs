//! What the provider said of the last call on a branch, read from what was stored with its answer.
//!
//! Not here: what follows from it ([`super::trigger`]).

use contexture_ir::ResponseId;
use contexture_store::{Error as StoreError, NodeKind, ReadRequest, ResponseRecord};
use serde::Deserialize;

use super::trigger::ReportedUsage;
use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::recording::CallRecord;

/// How many nodes from the end of a path the last answer is looked for.
const BACK: u64 = 256;

/// Of a stored usage.
#[derive(Deserialize)]
struct StoredInputUsage {
    input_tokens: Option<u64>,
}

impl Conversation {
    /// What was reported for the last recorded call on this branch, if that was one of this model and both figures
    /// are known. An answer in which the provider compacted says nothing: it did not read what it was sent.
    pub(crate) async fn last_reported_usage(
        &self,
        model: &str,
    ) -> Result<Option<ReportedUsage>, EngineError> {
        let request = ReadRequest::last_nodes(self.current_position(), BACK);
        let nodes = self.store().read_path(self.owner(), self.id(), request);
        let nodes = nodes.await?.nodes;
        let Some(last) = nodes.iter().rev().find_map(|node| node.response) else {
            return Ok(None);
        };
        let mut its = nodes.iter().filter(|node| node.response == Some(last));
        if its.any(|node| node.kind == NodeKind::Compaction) {
            return Ok(None);
        }
        let record = self.find_response_record(last).await?;
        let record = record.filter(|record| record.model.as_deref() == Some(model));
        Ok(record.as_ref().and_then(reported_usage))
    }

    /// Imported answers have none.
    async fn find_response_record(
        &self,
        id: ResponseId,
    ) -> Result<Option<ResponseRecord>, EngineError> {
        match self
            .store()
            .load_response(self.owner(), self.id(), id)
            .await
        {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn reported_usage(record: &ResponseRecord) -> Option<ReportedUsage> {
    let usage: StoredInputUsage = serde_json::from_str(record.usage.as_deref()?).ok()?;
    let call: CallRecord = serde_json::from_slice(record.inputs.recorded_bytes()?).ok()?;
    Some(ReportedUsage {
        tokens: usage.input_tokens?,
        counted: call.tokens?,
    })
}
