//! Deletes conversations and erases owners in bounded steps.
//!
//! A deleted conversation leaves `conversations` at once, so nothing finds it any more; its name
//! stays in `deletions` until all its rows are removed. Each step is a short transaction of its
//! own, and an interrupted deletion continues later.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{EraseScope, Erased};
use tokio_postgres::Row;

use crate::calls;
use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::ConversationRow;

/// Largest number of rows that a step removes from one table, and from one whose rows are large.
const STEP_ROWS: i64 = 1000;
const STEP_LARGE: i64 = 50;
/// Largest number of conversations that one step hides.
const STEP_CONVERSATIONS: i64 = 100;

macro_rules! some_of {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM contexture.",
            $table,
            " WHERE conversation = $1 AND (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM contexture.",
            $table,
            " WHERE conversation = $1 ORDER BY ",
            $key,
            " LIMIT $2)"
        )
    };
}

/// Removes some rows of a conversation, table by table.
// Nodes first, since they hold most of the content.
const TABLES: [(&str, i64); 16] = [
    (some_of!("nodes", "segment, depth"), STEP_ROWS),
    (some_of!("terms", "segment, depth"), STEP_ROWS),
    (some_of!("segments", "segment"), STEP_ROWS),
    (some_of!("branches", "branch"), STEP_ROWS),
    (some_of!("checkpoints", "name"), STEP_ROWS),
    (some_of!("roots", "root_no"), STEP_ROWS),
    (some_of!("state_values", "hash"), STEP_LARGE),
    (some_of!("blobs", "blob_id"), STEP_LARGE),
    (some_of!("events", "event"), STEP_ROWS),
    (some_of!("attributes", "key"), STEP_ROWS),
    (some_of!("streams", "stream"), STEP_ROWS),
    (some_of!("stream_chunks", "epoch, seq"), STEP_ROWS),
    (some_of!("responses", "response_id"), STEP_LARGE),
    (some_of!("runs", "run"), STEP_LARGE),
    (
        some_of!("exchanges", "owner, path_hash, process, number"),
        STEP_ROWS,
    ),
    (
        some_of!("path_index", "owner, version, path_hash, segment, depth"),
        STEP_ROWS,
    ),
];

/// A conversation whose rows are being removed.
#[derive(Debug)]
pub(crate) struct PendingDeletion {
    owner: String,
    id: String,
    key: [u8; 16],
}

/// Result of one step of a deletion.
pub(crate) struct DeletionStep {
    /// Number of values outside the tree that the step removed.
    pub(crate) entries: u64,
    /// Whether rows may be left.
    pub(crate) more: bool,
}

/// Hides a conversation from readers.
pub(crate) async fn mark_deleted(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<PendingDeletion, RowError> {
    // Waits for an append in progress; later appends find no row.
    let key = ConversationRow::load_for_update(tx, owner, id).await?.key;
    mark_rows(tx, owner, vec![id.as_str().to_owned()], vec![key]);
    Ok(PendingDeletion {
        owner: owner.as_str().to_owned(),
        id: id.as_str().to_owned(),
        key,
    })
}

/// Hides locked conversations from readers.
fn mark_rows(tx: &mut Tx<'_>, owner: &Owner, ids: Vec<String>, keys: Vec<[u8; 16]>) {
    tx.execute_on_commit(
        // In the transaction that hides them, so that a crash leaves no rows that nothing finds.
        "INSERT INTO contexture.deletions (owner, id, conversation) \
         SELECT $1, gone.* FROM unnest($2, $3) AS gone",
        params![owner.as_str(), ids.clone(), keys.clone()],
    );
    tx.execute_on_commit(
        "DELETE FROM contexture.conversations WHERE conversation = ANY ($1)",
        params![keys],
    );
    tx.execute_on_commit(
        "DELETE FROM contexture.listings WHERE owner = $1 AND id = ANY ($2)",
        params![owner.as_str(), ids],
    );
}

/// Finds an unfinished deletion, of this owner or of any.
pub(crate) async fn find_pending(
    tx: &Tx<'_>,
    owner: Option<&Owner>,
) -> Result<Option<PendingDeletion>, RowError> {
    let row = tx
        .query_row(
            "SELECT owner, id, conversation FROM contexture.deletions \
             WHERE $1 IS NULL OR owner = $1 LIMIT 1",
            params![owner.map(Owner::as_str)],
        )
        .await?;
    row.map(|row| decode_pending(&row)).transpose()
}

/// Finds the unfinished deletion of an earlier conversation with this id.
pub(crate) async fn find_pending_by_id(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Option<PendingDeletion>, RowError> {
    let row = tx
        .query_row(
            "SELECT owner, id, conversation FROM contexture.deletions \
             WHERE owner = $1 AND id = $2",
            params![owner.as_str(), id.as_str()],
        )
        .await?;
    row.map(|row| decode_pending(&row)).transpose()
}

fn decode_pending(row: &Row) -> Result<PendingDeletion, RowError> {
    Ok(PendingDeletion {
        owner: get_column(row, 0)?,
        id: get_column(row, 1)?,
        key: get_bytes(row, 2)?,
    })
}

/// Takes one step of removing the rows of a conversation.
pub(crate) async fn delete_step(
    tx: &mut Tx<'_>,
    gone: &PendingDeletion,
) -> Result<DeletionStep, RowError> {
    // The deletion must still be pending: the id may be in use again.
    let still = tx
        .query_row(
            "SELECT FROM contexture.deletions WHERE owner = $1 AND id = $2 FOR UPDATE",
            params![gone.owner.as_str(), gone.id.as_str()],
        )
        .await?;
    if still.is_none() {
        return Ok(DeletionStep {
            entries: 0,
            more: false,
        });
    }
    // First, because a new conversation with the same id would see them.
    let entries = tx
        .execute(
            "DELETE FROM contexture.key_values WHERE owner = $1 AND scope_kind = 2 \
             AND scope = $2 AND key IN (SELECT key FROM contexture.key_values \
             WHERE owner = $1 AND scope_kind = 2 AND scope = $2 ORDER BY key LIMIT $3)",
            params![
                gone.owner.as_str(),
                Bytea::Text(gone.id.as_str().into()),
                STEP_LARGE
            ],
        )
        .await?;
    let owner = Owner::new(gone.owner.as_str());
    let owner = owner.map_err(|error| corrupt_error(error.to_string()))?;
    let more = entries >= STEP_LARGE.unsigned_abs()
        || calls::forget_conversation(tx, &owner, gone.key).await?
        || delete_conversation_rows(tx, gone.key).await?;
    if !more {
        // The entry is removed by the step that finds nothing left.
        tx.execute_on_commit(
            "DELETE FROM contexture.details WHERE conversation = $1",
            params![gone.key],
        );
        tx.execute_on_commit(
            "DELETE FROM contexture.deletions WHERE owner = $1 AND id = $2",
            params![gone.owner.as_str(), gone.id.as_str()],
        );
    }
    Ok(DeletionStep { entries, more })
}

/// Deletes rows of a conversation table by table; returns whether rows may be left.
async fn delete_conversation_rows(tx: &mut Tx<'_>, key: [u8; 16]) -> Result<bool, RowError> {
    // Stops at the first statement that reaches its limit, so that a step stays short.
    for (sql, limit) in TABLES {
        if tx.execute(sql, params![key, limit]).await? >= limit.unsigned_abs() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes one step of erasing everything of an owner or a resource.
pub(crate) async fn erase_step(
    tx: &mut Tx<'_>,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<Erased, RowError> {
    // Hidden conversations are removed before more are hidden.
    if let Some(gone) = find_pending(tx, Some(owner)).await? {
        return Ok(Erased {
            conversations: 0,
            entries: delete_step(tx, &gone).await?.entries,
            more: true,
        });
    }
    let conversations = hide_conversations(tx, owner, scope).await?;
    if conversations > 0 {
        return Ok(Erased {
            conversations,
            entries: 0,
            more: true,
        });
    }
    let resource = match scope {
        EraseScope::Owner => None,
        EraseScope::Resource(name) => Some(Bytea::Text(name.as_str().into())),
    };
    let entries = tx
        .execute(
            "DELETE FROM contexture.key_values WHERE owner = $1 \
             AND (scope_kind, scope, key) IN (SELECT scope_kind, scope, key \
             FROM contexture.key_values WHERE owner = $1 \
             AND ($2 IS NULL OR (scope_kind = 1 AND scope = $2)) LIMIT $3)",
            params![owner.as_str(), resource, STEP_LARGE],
        )
        .await?;
    // Those of a resource stay: deletion has taken its conversations' keys from them.
    let more_calls = *scope == EraseScope::Owner && calls::erase_calls(tx, owner).await?;
    Ok(Erased {
        conversations: 0,
        entries,
        more: entries >= STEP_LARGE.unsigned_abs() || more_calls,
    })
}

async fn hide_conversations(
    tx: &mut Tx<'_>,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<u64, RowError> {
    let resource = match scope {
        EraseScope::Owner => None,
        EraseScope::Resource(name) => Some(Bytea::Text(name.as_str().into())),
    };
    let listed = tx
        .query_rows(
            "SELECT conversation FROM contexture.listings \
             WHERE owner = $1 AND ($2 IS NULL OR resource = $2) ORDER BY id LIMIT $3",
            params![owner.as_str(), resource, STEP_CONVERSATIONS],
        )
        .await?;
    let keys = listed.iter().map(|row| get_bytes(row, 0));
    let keys = keys.collect::<Result<Vec<[u8; 16]>, RowError>>()?;
    if keys.is_empty() {
        return Ok(0);
    }
    // Waits for writes in progress.
    let locked = tx
        .query_rows(
            "SELECT id, conversation FROM contexture.conversations \
             WHERE conversation = ANY ($1) ORDER BY conversation FOR UPDATE",
            params![keys],
        )
        .await?;
    let (mut ids, mut keys) = (Vec::new(), Vec::new());
    for row in &locked {
        ids.push(get_column::<String>(row, 0)?);
        keys.push(get_bytes(row, 1)?);
    }
    // Either the listings are damaged, or others deleted all of these conversations meanwhile.
    if ids.is_empty() {
        return Err(corrupt_error("conversations are listed that do not exist"));
    }
    let count = ids.len() as u64;
    mark_rows(tx, owner, ids, keys);
    Ok(count)
}
