//! Compactions: summaries that stand for the older part of a conversation.

use contexture::engine::{CompactionDraft, CoverEntry};
use serde::Serialize;
use utoipa::ToSchema;

/// A compaction, stored or drafted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompactionDocument {
    /// Id of the node that holds the compaction; `null` for a draft.
    pub compaction: Option<String>,
    /// Id of the first node that it covers.
    pub first: String,
    /// Id of the last node that it covers.
    pub last: String,
    /// Number of items that it covers.
    pub items: usize,
    /// Tokens of the covered items; an earlier compaction among them counts instead of what it covers.
    pub tokens: u64,
    /// Tokens of the compaction itself.
    pub summary_tokens: u64,
    /// Texts of the compaction: a summary, if there is one, and the manifest.
    pub summary: Vec<String>,
    /// Whether the summary is an earlier one of the same span.
    pub reused: bool,
}

impl CompactionDocument {
    /// Creates the document of a draft; `node` is the node it was stored as, `None` if it was not stored.
    #[must_use]
    pub fn new(draft: &CompactionDraft, node: Option<String>) -> Self {
        Self {
            compaction: node,
            first: draft.first.to_string(),
            last: draft.last.to_string(),
            items: draft.items,
            tokens: draft.tokens,
            summary_tokens: draft.summary_tokens,
            summary: draft.summary.clone(),
            reused: draft.reused,
        }
    }
}

/// A compaction that is in effect on a branch.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CoverDocument {
    /// Id of the node that holds the compaction.
    pub compaction: String,
    /// Id of the first node that it covers.
    pub first: String,
    /// Id of the last node that it covers.
    pub last: String,
}

impl From<&CoverEntry> for CoverDocument {
    fn from(cover: &CoverEntry) -> Self {
        Self {
            compaction: cover.compaction.to_string(),
            first: cover.first.to_string(),
            last: cover.last.to_string(),
        }
    }
}

/// The compactions in effect on a branch, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CoversDocument {
    /// The compactions in effect, oldest first.
    pub compactions: Vec<CoverDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}
