//! A provider's request with its whole history, matched to a stored conversation.

use contexture::ir::Raw;
use serde::{Deserialize, Serialize};

/// A request as a client sends it to a provider, to be matched to a conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngestDocument {
    /// Format of the request, such as `openai-chat`.
    pub format: String,
    /// The request: its history, and whatever else it has.
    pub request: Raw,
    /// What the conversation is about, if it is created. Default: nothing.
    pub resource: Option<String>,
}

/// Where a request was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IngestedDocument {
    /// Name of the branch that ends with what the request says.
    pub branch: String,
    /// Id of the last node of what it says; `null` if it says nothing.
    pub head: Option<String>,
    /// Ids of the nodes that were stored for it.
    pub items: Vec<String>,
    /// Whether the branch was opened for it, because its history differs from what the others have.
    pub opened: bool,
}
