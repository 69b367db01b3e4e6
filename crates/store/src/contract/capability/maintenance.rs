//! Maintenance: the calls that check, count, clean up and copy what is stored.
//!
//! A capability, not part of [`Store`](crate::Store):
//! [`Store::maintenance`](crate::Store::maintenance) gives it where a backend keeps something that
//! can be damaged, grow or be copied. Everything here may run beside readers and writers.
//!
//! Not here: deleting and redacting, which are part of the contract, and interrupted deletions,
//! which the store finishes by itself.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};

use crate::contract::{Error, NodeKind};

/// Checks, counts, cleans up and copies what a store holds.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Checks a page of a conversation.
    ///
    /// Nodes are checked against their hashes, positions, counters, state and the search index; then
    /// state, blobs, streams, values, records of responses and names. Damage is a finding, and the
    /// check continues after it. Begin without a cursor and continue with [`VerifyPage::next`], or use
    /// [`verify_conversation`].
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Storage`] if nothing can be read at all.
    async fn verify_page(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: Option<VerifyCursor>,
    ) -> Result<VerifyPage, Error>;

    /// Runs the database's own check of its files; returns a line for each fault, none if all is well.
    ///
    /// It reads everything. A backend may add faults of values that belong to no conversation.
    ///
    /// # Errors
    /// [`Error::NotOffered`] where the database has no such check.
    async fn verify_medium(&self) -> Result<Vec<String>, Error>;

    /// Counts the rows and bytes of a conversation as stored. It reads each of its rows.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn read_statistics(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Statistics, Error>;

    /// Lists owners of conversations in order of their names, with what each has stored. An owner's bytes take a look at each of
    /// its items.
    ///
    /// # Errors
    /// The database's.
    async fn list_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<OwnerSize>, Error>;

    /// Removes blobs of a conversation that no item, no state value and no value outside the tree of this conversation names.
    ///
    /// A blob may be stored before the item or value that names it. So the first collection only marks it as
    /// unnamed. One that runs at least [`CollectRequest::grace_ms`] later, and still finds it
    /// unnamed, removes it unless it was stored again in between. State values are never collected:
    /// each belongs to a node, and nodes are permanent.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Busy`] if the conversation was written to meanwhile: nothing
    /// was removed, try again.
    async fn collect_blobs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: CollectRequest,
    ) -> Result<Collected, Error>;

    /// Returns unused space to the file system, in bounded steps that let others read and write.
    async fn compact_storage(&self) -> Result<Compacted, Error>;

    /// Copies everything to a new file, as it is at one instant.
    ///
    /// The copy has every write that was acknowledged before this call. Writers continue meanwhile.
    ///
    /// # Errors
    /// [`Error::NotOffered`] where the database has its own program for this.
    /// [`Error::AlreadyExists`] if the file exists: nothing is overwritten. [`Error::Storage`] if
    /// it cannot be written; a partial copy is removed.
    async fn back_up(&self, to: &Path) -> Result<BackedUp, Error>;
}

/// What an owner has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerSize {
    /// The owner itself, as keys and headers name it.
    pub owner: Owner,
    /// Number of its conversations.
    pub conversations: u64,
    /// Number of items in them.
    pub nodes: u64,
    /// Bytes of the items as stored, compressed where they are.
    pub bytes: u64,
}

/// Position at which the next page of a check begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyCursor {
    /// Part of the conversation, as a number that only the backend understands.
    pub part: u8,
    /// Last row of that part that was checked.
    pub after: i64,
}

/// Result of a check.
#[derive(Debug, Default)]
pub struct VerifyPage {
    /// Damage that was found, each an [`Error::Damaged`] that names its position.
    pub findings: Vec<Error>,
    /// Number of rows that were checked.
    pub checked: u64,
    /// Cursor of the next page; `None` when the check is complete.
    pub next: Option<VerifyCursor>,
}

/// Checks a whole conversation, page by page.
///
/// # Errors
/// As [`Maintenance::verify_page`].
pub async fn verify_conversation(
    store: &dyn Maintenance,
    owner: &Owner,
    id: &ConversationId,
) -> Result<VerifyPage, Error> {
    let mut whole = VerifyPage::default();
    let mut after = None;
    loop {
        let page = store.verify_page(owner, id, after).await?;
        whole.findings.extend(page.findings);
        whole.checked += page.checked;
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(whole),
        }
    }
}

/// Number and size of stored rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageAmount {
    /// Number of rows.
    pub count: u64,
    /// Size of their content in bytes, as stored and thus after any compression.
    pub bytes: u64,
}

/// Rows and bytes that a conversation takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes, by the kind of their item.
    pub nodes: BTreeMap<NodeKind, StorageAmount>,
    /// State roots, which nodes with equal state share.
    pub roots: StorageAmount,
    /// State values, without those that a backend stores as blobs because of their size.
    pub values: StorageAmount,
    /// Blobs, with state values that the backend stores as blobs.
    pub blobs: StorageAmount,
    /// Values outside the tree in the conversation's scope.
    pub entries: StorageAmount,
    /// Number of branches and checkpoints.
    pub names: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Number of segments, which are unforked runs of nodes.
    pub segments: u64,
}

/// Options of a collection of unnamed blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectRequest {
    /// Current time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Time for which a blob must be known as unnamed before it is removed, in milliseconds. Default one hour.
    pub grace_ms: i64,
    /// Largest number of blobs to remove. Default 1,000.
    pub limit: usize,
}

impl CollectRequest {
    /// Returns a request with the defaults.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self {
            now_ms,
            grace_ms: 3_600_000,
            limit: 1000,
        }
    }
}

/// Result of a collection of unnamed blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Number and size of the removed blobs.
    pub blobs: StorageAmount,
    /// Number of unnamed blobs whose grace period is not over.
    pub waiting: u64,
    /// Whether the limit left blobs for the next call to remove.
    pub more: bool,
}

/// Size of the storage before and after compacting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes that were taken before.
    pub before: u64,
    /// Bytes that are taken now.
    pub after: u64,
}

/// Result of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// Size of the copy, in bytes.
    pub bytes: u64,
}
