//! Compactions: summaries that stand for the older part of a conversation.

use contexture::engine::{CompactionDraft, CoverEntry};
use serde::Serialize;
use utoipa::ToSchema;

/// A compaction, stored or drafted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompactionDocument {
    /// Its node; `null`: it was only drafted.
    pub compaction: Option<String>,
    /// The first node it stands for.
    pub first: String,
    /// The last.
    pub last: String,
    /// How many items it stands for.
    pub items: usize,
    /// Their tokens.
    pub tokens: u64,
    /// Its own tokens.
    pub summary_tokens: u64,
    /// What it says.
    pub summary: Vec<String>,
    /// Whether it was written before for the same content.
    pub reused: bool,
}

impl CompactionDocument {
    /// A draft, and the node it was stored as.
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

/// A compaction in effect.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CoverDocument {
    /// Its node.
    pub compaction: String,
    /// The first node it stands for.
    pub first: String,
    /// The last.
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
    /// The compactions.
    pub compactions: Vec<CoverDocument>,
}
