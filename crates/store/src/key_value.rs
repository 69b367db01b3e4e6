//! Values outside the tree: they do not rewind.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};

use crate::error::Error;

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
pub struct Entry {
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
pub enum Expected {
    /// Whatever there is.
    Any,
    /// Nothing.
    Absent,
    /// This version.
    Version(u64),
}

/// A write of one value.
#[derive(Clone, Debug)]
pub struct PutEntry {
    /// The key, 1 to 255 bytes.
    pub key: String,
    /// The value; `None` deletes it.
    pub value: Option<Arc<[u8]>>,
    /// What must be there now, or [`Error::VersionConflict`].
    pub expect: Expected,
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Versioned values by key, written by compare-and-set.
#[async_trait]
pub trait KeyValues: Send + Sync {
    /// The value of a key, if there is one.
    async fn entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<Entry>, Error>;

    /// All values whose key begins with `prefix`, by key.
    async fn entries(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        prefix: &str,
    ) -> Result<Vec<Entry>, Error>;

    /// Writes or deletes one value and gives its new version. A conversation's scope requires the
    /// conversation.
    async fn put_entry(&self, owner: &Owner, scope: &KeyScope, put: PutEntry)
    -> Result<u64, Error>;
}
