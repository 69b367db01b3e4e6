//! The row of a conversation, which every write to its tree locks first and saves last.

use std::fmt;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{EntityKind, Error};
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{get_column, params};
use crate::connection::transaction::Tx;

/// A conversation's key, the beginning of all its keys. It is derived from owner and id, so no
/// query is needed to find it, and another owner has another key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConversationKey([u8; 16]);

impl ConversationKey {
    pub(crate) fn of(owner: &Owner, id: &ConversationId) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("contexture 2026 conversation key");
        // The separator occurs in neither: "ab" + "c" and "a" + "bc" must be two keys.
        for part in [owner.as_str(), "\0", id.as_str()] {
            hasher.update(part.as_bytes());
        }
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }

    pub(crate) fn into_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The part of a conversation's row that writes need.
#[derive(Debug)]
pub(crate) struct ConversationRow {
    pub(crate) key: [u8; 16],
    pub(crate) owner: Owner,
    pub(crate) id: ConversationId,
    pub(crate) active_branch: i32,
    pub(crate) version: i32,
    pub(crate) nodes: i32,
    pub(crate) branches: i32,
    pub(crate) next_segment: i32,
    pub(crate) next_branch: i32,
    pub(crate) next_root: i32,
    pub(crate) next_event: i32,
    pub(crate) updated_ms: i64,
}

// Waits for the writer before and returns the row that it left. The lock of an UPDATE, unlike that
// of SELECT FOR UPDATE, does not block stream writes, which hold FOR KEY SHARE.
const LOCK: &str = "UPDATE contexture.conversations SET writes = writes + 1 \
     WHERE conversation = $1 \
     RETURNING active_branch, version, nodes, branches, next_segment, next_branch, next_root, \
     next_event, updated_ms";

const READ: &str = "SELECT active_branch, version, nodes, branches, next_segment, next_branch, \
     next_root, next_event, updated_ms FROM contexture.conversations WHERE conversation = $1";

const SAVE: &str = "UPDATE contexture.conversations SET active_branch = $2, version = $3, \
     nodes = $4, branches = $5, next_segment = $6, next_branch = $7, next_root = $8, \
     next_event = $9, updated_ms = $10 WHERE conversation = $1";

// Listings carry the update time, so that conversations can be listed from one index.
const SAVE_LISTING: &str =
    "UPDATE contexture.listings SET updated_ms = $3 WHERE owner = $1 AND id = $2";

impl ConversationRow {
    /// Reads and locks the row of the owner's conversation with that id: other writes to its tree
    /// wait until the end of this transaction, and later queries see what earlier writes left.
    pub(crate) async fn load_for_update(
        tx: &Tx<'_>,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Self, RowError> {
        let key = ConversationKey::of(owner, id).into_bytes();
        Self::from_row(tx.query_row(LOCK, params![key]).await?, owner, id)
    }

    /// Reads the row of the owner's conversation with that id.
    pub(crate) async fn load_for_read(
        tx: &Tx<'_>,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Self, RowError> {
        let key = ConversationKey::of(owner, id).into_bytes();
        Self::from_row(tx.query_row(READ, params![key]).await?, owner, id)
    }

    fn from_row(row: Option<Row>, owner: &Owner, id: &ConversationId) -> Result<Self, RowError> {
        let row = row.ok_or_else(|| Error::not_found(EntityKind::Conversation, id))?;
        Ok(Self {
            key: ConversationKey::of(owner, id).into_bytes(),
            owner: owner.clone(),
            id: id.clone(),
            active_branch: get_column(&row, 0)?,
            version: get_column(&row, 1)?,
            nodes: get_column(&row, 2)?,
            branches: get_column(&row, 3)?,
            next_segment: get_column(&row, 4)?,
            next_branch: get_column(&row, 5)?,
            next_root: get_column(&row, 6)?,
            next_event: get_column(&row, 7)?,
            updated_ms: get_column(&row, 8)?,
        })
    }

    /// Writes the row back.
    pub(crate) fn save(&self, tx: &mut Tx<'_>) {
        tx.execute_on_commit(
            SAVE,
            params![
                self.key,
                self.active_branch,
                self.version,
                self.nodes,
                self.branches,
                self.next_segment,
                self.next_branch,
                self.next_root,
                self.next_event,
                self.updated_ms
            ],
        );
        tx.execute_on_commit(
            SAVE_LISTING,
            params![self.owner.as_str(), self.id.as_str(), self.updated_ms],
        );
    }

    /// Returns [`Error::Damaged`] for a place in this conversation.
    pub(crate) fn damaged_error(
        &self,
        what: &'static str,
        position: impl fmt::Display,
        why: impl Into<String>,
    ) -> Error {
        Error::damaged(&self.id, what, position, why)
    }
}

/// Takes `count` numbers from a counter of the conversation; returns the first.
pub(crate) fn next_number(
    counter: &mut i32,
    count: usize,
    limit: &'static str,
) -> Result<i32, Error> {
    let first = *counter;
    // A counter that wraps around would give keys that exist.
    let next = i32::try_from(count).ok().and_then(|n| first.checked_add(n));
    *counter = next.ok_or(Error::Limit {
        limit,
        max: i32::MAX as u64,
        actual: u64::try_from(first).unwrap_or(0) + count as u64,
    })?;
    Ok(first)
}
