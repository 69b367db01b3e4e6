//! Imported sessions: sessions of other programs that became conversations.

use contexture::engine::{DivergedSession, Imported};
use contexture::sessions::SessionFormat;
use serde::Serialize;
use utoipa::ToSchema;

/// A session that is kept.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionDocument {
    /// Its conversation.
    pub conversation: String,
    /// What people call it.
    pub title: Option<String>,
    /// The format it came in.
    pub format: &'static str,
    /// The session's own id.
    pub source: String,
    /// Its items.
    pub items: usize,
    /// Of them, those that were not kept before.
    pub new: usize,
    /// Its branches.
    pub branches: usize,
    /// Where it parted from what was kept; `null`: it did not.
    pub parted: Option<DivergenceDocument>,
}

/// Where a session parted from what was kept.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PartedDocument)]
pub struct DivergenceDocument {
    /// The branch that the rest of it is on.
    pub branch: String,
    /// So many items are shared.
    pub after: usize,
}

impl SessionDocument {
    /// What came of a session of this format and id.
    #[must_use]
    pub fn new(format: SessionFormat, source: &str, imported: &Imported) -> Self {
        let parted = |parted: &DivergedSession| DivergenceDocument {
            branch: parted.branch.to_string(),
            after: parted.shared,
        };
        Self {
            conversation: imported.conversation.to_string(),
            title: imported.title.clone(),
            format: format.as_str(),
            source: source.to_owned(),
            items: imported.nodes,
            new: imported.new_nodes,
            branches: imported.branches,
            // Not an error: the other program rewound its history, and both versions are kept.
            parted: imported.diverged.as_ref().map(parted),
        }
    }
}

/// Sessions that are kept, and what could not be read of them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionsDocument {
    /// Each, in order.
    pub imported: Vec<SessionDocument>,
    /// Records that were left out, and why.
    pub skipped: Vec<String>,
}
