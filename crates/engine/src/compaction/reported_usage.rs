//! The usage that the provider reported for the last call on a branch, as stored with the answer.
//!
//! Not here: what follows from it (`trigger`).

use contexture_ir::ResponseId;
use contexture_store::{Error as StoreError, NodeKind, ReadRequest, ResponseRecord};
use serde::Deserialize;

use super::trigger::ReportedUsage;
use crate::call::CallRecord;
use crate::error::EngineError;
use crate::handle::Conversation;

/// How many nodes from the end of a path the last answer is looked for.
const BACK: u64 = 256;

/// Of a stored usage.
#[derive(Deserialize)]
struct StoredInputUsage {
    input_tokens: Option<u64>,
}

/// The record of the last call on this branch, if that was one of this model. An answer in which the provider compacted
/// says nothing: it did not read what it was sent.
async fn last_record(
    chat: &Conversation,
    model: &str,
) -> Result<Option<ResponseRecord>, EngineError> {
    let request = ReadRequest::last_nodes(chat.current_position(), BACK);
    let nodes = chat.store().read_path(chat.owner(), chat.id(), request);
    let nodes = nodes.await?.nodes;
    // Looked for near the end only: a figure from far back says little about the size now.
    let Some(last) = nodes.iter().rev().find_map(|node| node.response) else {
        return Ok(None);
    };
    let mut answer_nodes = nodes.iter().filter(|node| node.response == Some(last));
    if answer_nodes.any(|node| node.kind == NodeKind::Compaction) {
        return Ok(None);
    }
    let record = find_response_record(chat, last).await?;
    // Another model counts with another tokenizer; its figure cannot scale ours.
    Ok(record.filter(|record| record.model.as_deref() == Some(model)))
}

/// What was reported for the last recorded call on this branch, if that was one of this model and both figures are known.
pub(crate) async fn last_reported_usage(
    chat: &Conversation,
    model: &str,
) -> Result<Option<ReportedUsage>, EngineError> {
    let record = last_record(chat, model).await?;
    Ok(record.as_ref().and_then(reported_usage))
}

/// What was counted of the last recorded call on this branch, if that was one of this model.
pub(crate) async fn last_counted_tokens(
    chat: &Conversation,
    model: &str,
) -> Result<Option<u64>, EngineError> {
    let record = last_record(chat, model).await?;
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
