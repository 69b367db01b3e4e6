//! What a list of conversations shows of each: how it begins, and what its calls used and cost.
//!
//! Nothing of it is stored for itself: how a conversation begins is read from its first nodes, so that a redaction or another
//! branch shows at once.

use std::sync::Arc;

use contexture_compile::number_format::one_line;
use contexture_ir::{Item, Owner, Role, truncate_chars};
use contexture_store::{
    Conversation as Record, ConversationCalls, Error as StoreError, PathEnd, ReadRequest,
};
use futures_util::future::try_join_all;

use super::Engine;
use crate::error::EngineError;
use crate::path::parse_node_item;

/// Nodes from the begin of a conversation among which the first words of a person are looked for.
const MAX_NODES: usize = 8;
/// Characters of these words that are shown.
const MAX_CHARACTERS: usize = 80;
/// Conversations that are read at the same time.
const CONCURRENT_READS: usize = 8;

/// What a list shows of a conversation beside its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationOverview {
    /// Beginning of the first message of a person on the active branch, one line of at most 80 characters; `None` if there is
    /// none among its first 8 items.
    pub preview: Option<String>,
    /// What its calls of models used and cost; zero in a store that keeps no record of calls.
    pub calls: ConversationCalls,
}

/// Loads what a list shows of these conversations, in their order.
pub(crate) async fn load_overviews(
    engine: &Engine,
    owner: &Owner,
    conversations: &[Record],
) -> Result<Vec<ConversationOverview>, EngineError> {
    let mut calls = Vec::new();
    let batch = engine.store().limits().call_batch.max(1);
    for conversations in conversations.chunks(batch) {
        let ids: Vec<_> = conversations.iter().map(|one| one.id.clone()).collect();
        match engine.store().calls() {
            Some(record) => calls.extend(record.sum_conversations(owner, &ids).await?),
            None => calls.extend(ids.iter().map(|_| ConversationCalls::default())),
        }
    }
    let mut previews = Vec::new();
    for conversations in conversations.chunks(CONCURRENT_READS) {
        let mut reads = Vec::new();
        for conversation in conversations {
            reads.push(load_preview(engine, owner, conversation));
        }
        previews.extend(try_join_all(reads).await?);
    }
    let both = previews.into_iter().zip(calls);
    Ok(both
        .map(|(preview, calls)| ConversationOverview { preview, calls })
        .collect())
}

async fn load_preview(
    engine: &Engine,
    owner: &Owner,
    conversation: &Record,
) -> Result<Option<String>, EngineError> {
    let request = ReadRequest {
        limit: Some(MAX_NODES),
        ..ReadRequest::whole_path(PathEnd::Branch(conversation.active.clone()))
    };
    let page = match engine
        .store()
        .read_path(owner, &conversation.id, request)
        .await
    {
        Ok(page) => page,
        // Deleted since it was listed.
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    for node in page.nodes.iter().map(Arc::as_ref) {
        // A damaged item must not hide the list that it stands in.
        let Ok(item) = parse_node_item(node) else {
            continue;
        };
        if matches!(item, Item::Message(_)) && item.role() == Some(Role::User) {
            let line = one_line(&item.text());
            if !line.trim().is_empty() {
                return Ok(Some(truncate_chars(line.trim(), MAX_CHARACTERS)));
            }
        }
    }
    Ok(None)
}
