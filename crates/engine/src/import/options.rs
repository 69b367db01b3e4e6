//! Options and result of an import.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use contexture_ir::{BranchName, ConversationId, Owner};

/// Options for one import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Whose the conversation is; default `local`.
    pub owner: Owner,
    /// Its id; default: made of the session's own. If it names a conversation that came from elsewhere,
    /// the session goes on from what both say.
    pub conversation: Option<ConversationId>,
    /// The subject it is about, an end user say; default: none. A conversation that is there already must have the
    /// same one, unless nothing is said here.
    pub resource: Option<String>,
    /// Counts items while they are stored, for whoever shows how far the import is.
    pub stored_items: Arc<AtomicU64>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            owner: Owner::local(),
            conversation: None,
            resource: None,
            stored_items: Arc::default(),
        }
    }
}

/// What an import stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Conversation that holds the session.
    pub conversation: ConversationId,
    /// Title of the session.
    pub title: Option<String>,
    /// Nodes of the session.
    pub nodes: usize,
    /// Of them, those that were not stored before.
    pub new_nodes: usize,
    /// Branches of the session.
    pub branches: usize,
    /// Where the session parted from what was stored; `None` if it did not.
    pub diverged: Option<DivergedSession>,
}

/// A session that went another way than the conversation it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DivergedSession {
    /// The branch it is on now, the active one.
    pub branch: BranchName,
    /// How many of its nodes are common to both.
    pub shared: usize,
}
