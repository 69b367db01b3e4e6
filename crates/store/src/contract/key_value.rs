//! Key-value entries: values outside the tree, which do not rewind with it.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};

use crate::contract::Error;

/// What a value belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyScope {
    /// The owner.
    Owner,
    /// A resource of the owner.
    Resource(String),
    /// A conversation; deleted with it.
    Conversation(ConversationId),
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValueEntry {
    /// Its key, 1 to 255 bytes.
    pub key: String,
    /// The value.
    pub value: Arc<[u8]>,
    /// Grows with each write of the key, deletions included, so that no version returns.
    pub version: u64,
    /// When it was written.
    pub at_ms: i64,
}

/// Which version a write replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any, or none.
    Any,
    /// None: there must be no value.
    Absent,
    /// This version.
    Version(u64),
}

/// Which values to list.
#[derive(Clone, Debug, Default)]
pub struct ListEntries {
    /// Only those of this scope; `None`: of all the owner's scopes.
    pub scope: Option<KeyScope>,
    /// Only those whose key begins with this; empty: all.
    pub prefix: String,
    /// At most this many; default (`None`) 1,000.
    pub limit: Option<usize>,
    /// Go on after the page that ended here.
    pub after: Option<EntryCursor>,
}

impl ListEntries {
    /// How many values a page has unless [`limit`](Self::limit) says otherwise.
    pub const DEFAULT_LIMIT: usize = 1000;

    /// The values of `scope` whose key begins with `prefix`.
    #[must_use]
    pub fn in_scope(scope: KeyScope, prefix: impl Into<String>) -> Self {
        Self {
            scope: Some(scope),
            prefix: prefix.into(),
            ..Self::default()
        }
    }
}

/// Where a page of values ended. A value written between two pages may be missed; one that exists
/// all the time is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryCursor {
    /// The last value's scope.
    pub scope: KeyScope,
    /// Its key.
    pub key: String,
}

impl EntryCursor {
    /// The cursor of a page that ends with the last of these; `None` for an empty page.
    #[must_use]
    pub fn after_last(entries: &[(KeyScope, KeyValueEntry)]) -> Option<Self> {
        let (scope, entry) = entries.last()?;
        Some(Self {
            scope: scope.clone(),
            key: entry.key.clone(),
        })
    }
}

/// A page of values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// By scope (the owner's, resources by name, conversations by id), then by key.
    pub entries: Vec<(KeyScope, KeyValueEntry)>,
    /// The cursor of the next page; `None`: this is the last.
    pub next: Option<EntryCursor>,
}

/// A write of one value.
#[derive(Clone, Debug)]
pub struct PutEntry {
    /// The key, 1 to 255 bytes.
    pub key: String,
    /// The value; `None` deletes it.
    pub value: Option<Arc<[u8]>>,
    /// What must be there now, or [`Error::VersionConflict`].
    pub expect: ExpectedVersion,
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Versioned values by key, written by compare-and-set.
#[async_trait]
pub trait KeyValues: Send + Sync {
    /// Reads the value of a key, if there is one.
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error>;

    /// Lists the values of one scope or of all scopes of the owner, by scope and then by key.
    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error>;

    /// Writes or deletes one value; returns its new version.
    ///
    /// # Errors
    ///
    /// [`Error::VersionConflict`] if the stored value is not the one that [`PutEntry::expect`] names;
    /// [`Error::NotFound`] for the scope of an unknown conversation.
    async fn put_entry(&self, owner: &Owner, scope: &KeyScope, put: PutEntry)
    -> Result<u64, Error>;
}
