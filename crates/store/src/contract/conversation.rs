//! Conversations: the record beside the tree.

use std::collections::BTreeMap;

use contexture_ir::{BranchName, ConversationId, Owner, Raw};

use crate::contract::MetadataFilter;

/// A conversation's metadata: a JSON object whose values are kept as written.
pub type Metadata = BTreeMap<String, Raw>;

/// A conversation as stored, without its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Owner of the conversation; nobody else can see it.
    pub owner: Owner,
    /// Id of the conversation, unique within the owner.
    pub id: ConversationId,
    /// Title for people, if it has one.
    pub title: Option<String>,
    /// Subject of the conversation, such as an end user; by itself it isolates nothing.
    pub resource: Option<String>,
    /// Data of the caller's own, as a JSON object.
    pub metadata: Metadata,
    /// Branch that is used where a caller names none.
    pub active: BranchName,
    /// Version of title and metadata: 1 at first, one more after each update.
    pub version: u64,
    /// Number of nodes in the whole tree.
    pub nodes: u64,
    /// Number of branches in the conversation.
    pub branches: u64,
    /// Number of messages on the active branch.
    pub messages: u64,
    /// Number of the latest event, counted from 1: a reader that has read this one has read all.
    pub events: u64,
    /// Creation time in milliseconds since the Unix epoch, as given by the creator.
    pub created_ms: i64,
    /// Time of the latest write in milliseconds since the Unix epoch, as given by the writer.
    pub updated_ms: i64,
}

/// Conversation to be created, with the empty branch `main`.
#[derive(Clone, Debug)]
pub struct NewConversation {
    /// Id of the conversation, unique within the owner.
    pub id: ConversationId,
    /// Title for people, if it has one.
    pub title: Option<String>,
    /// Subject of the conversation, such as an end user.
    pub resource: Option<String>,
    /// Data of the caller's own, as a JSON object.
    pub metadata: Metadata,
    /// Creation time, in milliseconds since the Unix epoch.
    pub created_ms: i64,
}

impl NewConversation {
    /// Returns a conversation without title, resource and metadata.
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

/// Change of title or metadata, applied to what is stored at that moment.
#[derive(Clone, Debug)]
pub struct ConversationUpdate {
    /// Change of the title; by default none.
    pub title: TitleChange,
    /// Change of the metadata; by default none.
    pub metadata: MetadataChange,
    /// Version that must still be current, or the update fails with
    /// [`Error::VersionConflict`](crate::Error::VersionConflict); `None` accepts any.
    pub expect_version: Option<u64>,
    /// Time of the update, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl ConversationUpdate {
    /// Returns an update that changes neither title nor metadata yet.
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

/// Change of a conversation's title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TitleChange {
    /// The title stays as it is.
    Keep,
    /// The title is set, or removed by `None`.
    Set(Option<String>),
}

/// Change of a conversation's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataChange {
    /// The metadata stays as it is.
    Keep,
    /// All of the metadata is replaced.
    Replace(Metadata),
    /// Each key is set, or removed by `None`; other keys stay.
    Merge(BTreeMap<String, Option<Raw>>),
}

/// Filters of a list of conversations, all of which must match. The list begins with the most recently updated one.
#[derive(Clone, Debug, Default)]
pub struct ListConversations {
    /// Only conversations with this resource.
    pub resource: Option<String>,
    /// Only conversations whose title contains this text, upper and lower case alike.
    pub title: Option<String>,
    /// Only conversations whose metadata satisfies this condition.
    pub metadata: Option<MetadataFilter>,
    /// Only conversations updated at or after this time, in milliseconds since the Unix epoch.
    pub updated_since: Option<i64>,
    /// Only conversations updated before this time, in milliseconds since the Unix epoch.
    pub updated_before: Option<i64>,
    /// Largest number of conversations of a page; `None` means 100.
    pub limit: Option<usize>,
    /// Cursor of the page before; `None` for the first page.
    pub after: Option<ConversationCursor>,
}

impl ListConversations {
    /// Returns whether the list has conditions on titles or metadata, which may leave out most of what is looked at.
    #[must_use]
    pub const fn has_conditions(&self) -> bool {
        self.title.is_some() || self.metadata.is_some()
    }

    /// Returns the list without its conditions on titles and metadata: the conversations that these choose from.
    #[must_use]
    pub fn without_conditions(&self) -> Self {
        Self {
            title: None,
            metadata: None,
            ..self.clone()
        }
    }
}

/// Position at which a page of conversations ended. A conversation that is updated between two
/// pages may appear twice; one that is not updated is never left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationCursor {
    /// Update time of the page's last conversation, in milliseconds since the Unix epoch.
    pub updated_ms: i64,
    /// Id of the page's last conversation.
    pub id: ConversationId,
}

impl ConversationCursor {
    /// Returns the cursor of a page that ends with the last of these; `None` for an empty page.
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
    /// Conversations of the page, most recently updated first, ties by id.
    pub conversations: Vec<Conversation>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<ConversationCursor>,
    /// Whether the page ends because it is full or the list is. `false`: it ends because it has looked at
    /// [`Limits::list_scan`](crate::Limits::list_scan) conversations, most of which the conditions leave out. It may be empty
    /// then; `next` goes on where it stopped.
    pub complete: bool,
}

impl ConversationPage {
    /// Builds a page of at most `limit` of the conversations that were found; one more shows that another page follows. `stop`
    /// is the last conversation that was looked at, if others follow it that were not.
    #[must_use]
    pub fn new(
        mut conversations: Vec<Conversation>,
        limit: usize,
        stop: Option<ConversationCursor>,
    ) -> Self {
        let is_full = conversations.len() > limit;
        conversations.truncate(limit);
        Self {
            // Whoever has a full page need not know that the search for it would have stopped.
            complete: is_full || stop.is_none(),
            next: match is_full {
                true => ConversationCursor::after_last(&conversations),
                false => stop,
            },
            conversations,
        }
    }
}
