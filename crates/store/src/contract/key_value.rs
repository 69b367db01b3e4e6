//! Key-value entries: values outside the tree, which do not rewind with it.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};

use crate::contract::Error;

/// Beginning of the keys whose values repeat what items of their conversation say: a summary that waits to be used, say.
///
/// [`Store::redact_content`](crate::Store::redact_content) removes all values of the conversation under such keys, because
/// nothing records which items they were made from. Whoever makes them makes them anew.
pub const DERIVED_KEYS: &str = "derived/";

/// Scope of a value outside the tree: what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyScope {
    /// The owner, whose values belong to no resource or conversation.
    Owner,
    /// A resource of the owner, by name.
    Resource(String),
    /// A conversation of the owner; its values are deleted with it.
    Conversation(ConversationId),
}

/// Value outside the tree, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValueEntry {
    /// Key of the value, 1 to 255 bytes.
    pub key: String,
    /// Bytes of the value.
    pub value: Arc<[u8]>,
    /// Version, which grows from 1 with each write of the key, deletions included, so that none is used twice.
    pub version: u64,
    /// Time of the latest write, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Version that a write expects to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any version, or no value at all.
    Any,
    /// No value: the key must be free.
    Absent,
    /// The value with exactly this version.
    Version(u64),
}

/// Filters of a list of values outside the tree.
#[derive(Clone, Debug, Default)]
pub struct ListEntries {
    /// Only values of this scope; `None` for all of the owner's scopes.
    pub scope: Option<KeyScope>,
    /// Only values whose key begins with this text; empty for all.
    pub prefix: String,
    /// Largest number of values of a page; `None` means 1,000.
    pub limit: Option<usize>,
    /// Cursor of the page before; `None` for the first page.
    pub after: Option<EntryCursor>,
}

impl ListEntries {
    /// Number of values of a page without a [`limit`](Self::limit).
    pub const DEFAULT_LIMIT: usize = 1000;

    /// Returns a request for the values of `scope` whose key begins with `prefix`.
    #[must_use]
    pub fn in_scope(scope: KeyScope, prefix: impl Into<String>) -> Self {
        Self {
            scope: Some(scope),
            prefix: prefix.into(),
            ..Self::default()
        }
    }
}

/// Position at which a page of values ended. A value that is written between two pages may be
/// missed; one that exists all the time is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryCursor {
    /// Scope of the page's last value.
    pub scope: KeyScope,
    /// Key of the page's last value.
    pub key: String,
}

impl EntryCursor {
    /// Returns the cursor of a page that ends with the last of these; `None` for an empty page.
    #[must_use]
    pub fn after_last(entries: &[(KeyScope, KeyValueEntry)]) -> Option<Self> {
        let (scope, entry) = entries.last()?;
        Some(Self {
            scope: scope.clone(),
            key: entry.key.clone(),
        })
    }
}

/// A page of values outside the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// Values by scope (the owner's, then resources by name, then conversations by id) and then by key.
    pub entries: Vec<(KeyScope, KeyValueEntry)>,
    /// Cursor of the next page; `None` on the last page. A page ends after [`Limits::page_bytes`](crate::Limits::page_bytes) of
    /// values, too: it may have fewer than were asked for and not be the last.
    pub next: Option<EntryCursor>,
}

/// Write of one value outside the tree.
#[derive(Clone, Debug)]
pub struct PutEntry {
    /// Key of the value, 1 to 255 bytes.
    pub key: String,
    /// Bytes to store; `None` deletes the value.
    pub value: Option<Arc<[u8]>>,
    /// Version that must be stored now, or the write fails with [`Error::VersionConflict`].
    pub expect: ExpectedVersion,
    /// Time of the write, in milliseconds since the Unix epoch.
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
