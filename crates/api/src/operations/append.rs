//! Messages and items, appended to a branch; and requests to providers, of which only what is new is.

use contexture::engine::{Draft, IngestRequest, Ingested};
use contexture::ir::{BranchName, ConversationId, NodeId, message};
use contexture::wire::{DocumentKind, Loss};
use contexture::{Conversation, Engine, EngineError, Owner, lift};

use crate::documents::{AppendDocument, IngestDocument, IngestedDocument, SavedDocument};
use crate::operations::OperationError;
use crate::operations::message_input::{MessageRun, read_items, read_messages};
use crate::operations::request::parse_provider_format;

/// What holds for an append beside its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendOptions {
    /// Key by which the same append, sent again, is stored once. Default: none; each append is a new one.
    pub idempotency_key: Option<[u8; 16]>,
    /// Head that the branch must still have; `Some(None)`: none, it must be empty. Default: any.
    pub expected_head: Option<Option<NodeId>>,
    /// Largest number of messages and items together. Default: what the store takes in one transaction.
    pub max_items: Option<usize>,
}

/// Appends messages and items to a branch, in one transaction.
///
/// # Errors
/// Nothing to append, a message that cannot be read, or the engine's; `head_moved` if the branch has another head than is expected.
pub async fn append_messages(
    chat: &Conversation,
    asked: &AppendDocument,
    options: AppendOptions,
) -> Result<SavedDocument, OperationError> {
    let messages = asked.messages.as_deref().unwrap_or_default();
    let items = asked.items.as_deref().unwrap_or_default();
    // Before they are read: a list that is too long is not parsed only to be refused.
    check_length(messages.len() + items.len(), options.max_items)?;
    let mut draft = chat.draft();
    if let Some(key) = options.idempotency_key {
        draft.set_idempotency_key(key);
    }
    if let Some(head) = options.expected_head {
        draft.expect_head(head);
    }
    let mut losses = Vec::new();
    for run in read_messages(messages, None)? {
        losses.extend(push_run(&mut draft, run));
    }
    for item in read_items("items", items)? {
        draft.push_item(item);
    }
    if draft.is_empty() {
        let detail = "nothing to append: neither messages nor items";
        return Err(OperationError::member("messages", detail));
    }
    let stored = draft.commit().await?;
    Ok(SavedDocument {
        losses: losses.iter().map(Into::into).collect(),
        ..SavedDocument::from(&stored)
    })
}

fn check_length(items: usize, limit: Option<usize>) -> Result<(), EngineError> {
    match limit.filter(|limit| items > *limit) {
        Some(limit) => Err(EngineError::DraftTooLong { items, limit }),
        None => Ok(()),
    }
}

/// Adds messages to a draft, in order. Returns what of a provider's format no item can hold.
fn push_run(draft: &mut Draft, run: MessageRun) -> Vec<Loss> {
    match run {
        MessageRun::Ui(messages) => {
            for one in messages {
                draft.push(message(one));
            }
            Vec::new()
        }
        MessageRun::Provider(transcript, losses) => {
            for instruction in transcript.instructions {
                draft.push_item(instruction);
            }
            for item in transcript.items {
                draft.push_item(item);
            }
            losses
        }
    }
}

/// Matches a request to the conversation of this name, and stores what is new of it there. The conversation is created if it does
/// not exist.
///
/// # Errors
/// It cannot be read as a request of its format, or the engine's.
pub async fn ingest_request(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    branch: Option<&BranchName>,
    asked: &IngestDocument,
) -> Result<IngestedDocument, OperationError> {
    let format = parse_provider_format("format", &asked.format)?;
    let lifted = lift(format, asked.request.get()).map_err(EngineError::from)?;
    if lifted.kind != DocumentKind::Request {
        let detail = format!("is no request in the format {}", asked.format);
        return Err(OperationError::member("request", detail));
    }
    let incoming = IngestRequest {
        conversation: Some(conversation),
        branch,
        resource: asked.resource.as_deref(),
        ..IngestRequest::new(&lifted.transcript)
    };
    let ingested = engine.ingest(owner, incoming).await?;
    Ok(IngestedDocument::from(&ingested))
}

impl From<&Ingested> for IngestedDocument {
    fn from(ingested: &Ingested) -> Self {
        Self {
            branch: ingested.chat.branch().to_string(),
            head: ingested.head.map(|head| head.to_string()),
            items: ingested.appended.iter().map(ToString::to_string).collect(),
            opened: ingested.opened_branch.is_some(),
        }
    }
}
