//! The usage that the provider reported for the last call on a branch, as stored with the answer.
//!
//! Not here: what follows from it (`trigger`).

use contexture_ir::ResponseId;
use contexture_store::{Error as StoreError, NodeKind, ResponseRecord};
use serde::Deserialize;

use super::trigger::ReportedUsage;
use crate::call::CallRecord;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::path::StoredPath;

/// How many nodes from the end of a path the last answer is looked for.
const BACK: usize = 256;

/// Of a stored usage.
#[derive(Deserialize)]
struct StoredInputUsage {
    input_tokens: Option<u64>,
}

/// The record of the last call on a path, if that was one of this model. An answer in which the provider compacted says
/// nothing: it did not read what it was sent.
async fn last_record(
    chat: &Conversation,
    path: &StoredPath,
    model: &str,
) -> Result<Option<ResponseRecord>, EngineError> {
    // Looked for near the end only: a figure from far back says little about the size now.
    let near = || path.nodes.iter().rev().take(BACK);
    let Some(last) = near().find_map(|node| node.response) else {
        return Ok(None);
    };
    let mut answer_nodes = near().filter(|node| node.response == Some(last));
    if answer_nodes.any(|node| node.kind == NodeKind::Compaction) {
        return Ok(None);
    }
    let record = find_response_record(chat, last).await?;
    // Another model counts with another tokenizer; its figure cannot scale ours.
    Ok(record.filter(|record| record.model.as_deref() == Some(model)))
}

/// What was reported for the last recorded call on a path, if that was one of this model and both figures are known.
pub(crate) async fn last_reported_usage(
    chat: &Conversation,
    path: &StoredPath,
    model: &str,
) -> Result<Option<ReportedUsage>, EngineError> {
    let record = last_record(chat, path, model).await?;
    Ok(record.as_ref().and_then(reported_usage))
}

/// What was counted of the last recorded call on a path, if that was one of this model.
pub(crate) async fn last_counted_tokens(
    chat: &Conversation,
    path: &StoredPath,
    model: &str,
) -> Result<Option<u64>, EngineError> {
    let record = last_record(chat, path, model).await?;
    Ok(record.as_ref().and_then(counted_tokens))
}

/// Imported answers have none.
async fn find_response_record(
    chat: &Conversation,
    id: ResponseId,
) -> Result<Option<ResponseRecord>, EngineError> {
    match chat
        .store()
        .load_response(chat.owner(), chat.id(), id)
        .await
    {
        Ok(record) => Ok(Some(record)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn reported_usage(record: &ResponseRecord) -> Option<ReportedUsage> {
    let usage: StoredInputUsage = serde_json::from_str(record.usage.as_deref()?).ok()?;
    Some(ReportedUsage {
        tokens: usage.input_tokens?,
        counted: counted_tokens(record)?,
    })
}

fn counted_tokens(record: &ResponseRecord) -> Option<u64> {
    let call: CallRecord = serde_json::from_slice(record.inputs.recorded_bytes()?).ok()?;
    call.tokens
}
