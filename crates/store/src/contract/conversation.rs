//! Conversations: the record beside the tree.

use std::collections::BTreeMap;

use contexture_ir::{BranchName, ConversationId, Owner, Raw};

use crate::contract::MetadataFilter;

/// A conversation's metadata: a JSON object whose values are kept as written.
pub type Metadata = BTreeMap<String, Raw>;

/// A conversation as stored, without its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Whose it is.
    pub owner: Owner,
    /// Its id, unique within the owner.
    pub id: ConversationId,
    /// What people call it.
    pub title: Option<String>,
    /// The subject, an end user say. Never isolation by itself.
    pub resource: Option<String>,
    /// The caller's own data.
    pub metadata: Metadata,
    /// The branch a program that names none works on.
    pub active: BranchName,
    /// Counts title and metadata updates, from 1.
    pub version: u64,
    /// Nodes of the whole tree.
    pub nodes: u64,
    /// Branches.
    pub branches: u64,
    /// Messages on the active branch.
    pub messages: u64,
    /// The number of its last event: a reader that has read this one has read all.
    pub events: u64,
    /// Milliseconds since the Unix epoch, as the creator said.
    pub created_ms: i64,
    /// The time given with the latest write.
    pub updated_ms: i64,
}

/// A conversation to be made. It starts with the empty branch `main`.
#[derive(Clone, Debug)]
pub struct NewConversation {
    /// Its id, unique within the owner.
    pub id: ConversationId,
    /// What people call it.
    pub title: Option<String>,
    /// The subject, an end user say.
    pub resource: Option<String>,
    /// The caller's own data.
    pub metadata: Metadata,
    /// Milliseconds since the Unix epoch.
    pub created_ms: i64,
}

impl NewConversation {
    /// A conversation without title, resource and metadata.
    #[must_use]
    pub fn new(id: ConversationId, created_ms: i64) -> Self {
        Self {
            id,
            title: None,
            resource: None,
            metadata: Metadata::new(),
            created_ms,
        }
    }
}

/// A change of title or metadata, applied to what is stored at that moment.
#[derive(Clone, Debug)]
pub struct ConversationUpdate {
    /// The title.
    pub title: TitleChange,
    /// The metadata.
    pub metadata: MetadataChange,
    /// If given, the version that must still be current, or
    /// [`Error::VersionConflict`](crate::Error::VersionConflict).
    pub expect_version: Option<u64>,
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl ConversationUpdate {
    /// An update that changes nothing yet.
    #[must_use]
    pub fn new(at_ms: i64) -> Self {
        Self {
            title: TitleChange::Keep,
            metadata: MetadataChange::Keep,
            expect_version: None,
            at_ms,
        }
    }
}

/// What becomes of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TitleChange {
    /// Stays.
    Keep,
    /// Is set, or removed by `None`.
    Set(Option<String>),
}

/// What becomes of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataChange {
    /// Stays.
    Keep,
    /// Is replaced as a whole.
    Replace(Metadata),
    /// Each key is set, or removed by `None`; other keys stay.
    Merge(BTreeMap<String, Option<Raw>>),
}

/// Which conversations to list: those that satisfy all of this. Most recently updated first.
#[derive(Clone, Debug, Default)]
pub struct ListConversations {
    /// Only those of this resource.
    pub resource: Option<String>,
    /// Only those whose title contains this text, whatever the case of its letters.
    pub title: Option<String>,
    /// Only those whose metadata satisfies this.
    pub metadata: Option<MetadataFilter>,
    /// Only those updated at this time, in milliseconds since the Unix epoch, or later.
    pub updated_since: Option<i64>,
    /// Only those updated earlier than this.
    pub updated_before: Option<i64>,
    /// At most this many; default (`None`) 100.
    pub limit: Option<usize>,
    /// Go on after the page that ended here.
    pub after: Option<ConversationCursor>,
}

/// Where a page of conversations ended. A conversation updated between two pages may appear
/// twice, none is left out that was not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationCursor {
    /// Update time of the last conversation.
    pub updated_ms: i64,
    /// Its id.
    pub id: ConversationId,
}

impl ConversationCursor {
    /// The cursor of a page that ends with the last of these; `None` for an empty page.
    #[must_use]
    pub fn after_last(conversations: &[Conversation]) -> Option<Self> {
        let last = conversations.last()?;
        Some(Self {
            updated_ms: last.updated_ms,
            id: last.id.clone(),
        })
    }
}

/// A page of conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPage {
    /// Most recently updated first, ties by id.
    pub conversations: Vec<Conversation>,
    /// The cursor of the next page; `None`: this is the last.
    pub next: Option<ConversationCursor>,
}
