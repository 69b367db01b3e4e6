//! Requests to providers whose clients keep the history and send all of it each time.

use contexture::engine::{IngestRequest, Ingested};
use contexture::ir::{BranchName, ConversationId};
use contexture::wire::DocumentKind;
use contexture::{Engine, EngineError, Owner, lift};

use crate::documents::{IngestDocument, IngestedDocument};
use crate::operations::OperationError;
use crate::operations::request::parse_provider_format;

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
