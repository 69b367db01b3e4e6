//! Imported sessions: sessions of other programs that became conversations.

use contexture::engine::{DivergedSession, Imported};
use contexture::sessions::SessionFormat;
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::SessionFormatSchema;

/// A session that was imported into a conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionDocument {
    /// Id of the conversation that holds the session.
    pub conversation: String,
    /// Title of the session; `null` if it has none.
    pub title: Option<String>,
    /// Name of the format it was read from, such as `claude-code`.
    #[schema(value_type = SessionFormatSchema)]
    pub format: &'static str,
    /// Id of the session: that of its log, or one derived from the file name or text.
    pub source: String,
    /// Number of items in the session.
    pub items: usize,
    /// Number of its items that were not stored before.
    pub new: usize,
    /// Number of branches in the session.
    pub branches: usize,
    /// Where the session diverges from what was stored before; `null` if it does not.
    pub parted: Option<DivergenceDocument>,
}

/// The point at which a session diverges from what was stored before.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PartedDocument)]
pub struct DivergenceDocument {
    /// Name of the branch that holds the rest of the session.
    pub branch: String,
    /// Number of items that both have in common.
    pub after: usize,
}

impl SessionDocument {
    /// Creates the document of an imported session with this format and id.
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

/// Imported sessions, and the records that could not be read.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionsDocument {
    /// The sessions, in the order they were read.
    pub imported: Vec<SessionDocument>,
    /// Records that were left out, each with the reason.
    pub skipped: Vec<String>,
}
