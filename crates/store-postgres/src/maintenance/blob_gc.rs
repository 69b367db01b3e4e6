//! Garbage collection of unnamed blobs: found by a read transaction, marked and removed by a short
//! write.
//!
//! Not here: recognising ids in text (`BlobId::find_in_text`).

use std::collections::BTreeSet;

use contexture_ir::{ContentHash, ConversationId, Owner};
use contexture_store::{BlobId, CollectRequest, Collected, Error};
use futures_util::TryStreamExt as _;
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::key_values;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};

/// Codec of plain bytes.
const CODEC_PLAIN: i16 = 0;

/// Texts that may name a blob, each with its hash and its position.
const ITEMS: &str = "SELECT item, content_hash, codec, \
     'depth ' || depth || ' of segment ' || segment FROM contexture.nodes WHERE conversation = $1";
const VALUES: &str = "SELECT value, hash, codec, 'value ' || encode(hash, 'hex') \
     FROM contexture.state_values WHERE conversation = $1 AND value IS NOT NULL";

/// Blobs that nothing names, as a reader found them.
pub(crate) struct UnnamedBlobs {
    /// Number of the conversation's next event at that time: while it is the same, nobody has
    /// appended.
    next_event: i32,
    /// How often its values outside the tree had been written.
    value_writes: i64,
    blobs: BTreeSet<BlobId>,
}

/// Finds the blobs that nothing names. An unreadable text is an error, since it could name any
/// blob.
pub(crate) async fn find_unnamed_blobs(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<UnnamedBlobs, RowError> {
    let conv = ConversationRow::load_for_read(tx, owner, id).await?;
    // Counted before the values are read: one that is written in between is noticed.
    let value_writes = key_values::count_writes(tx, &conv).await?;
    let rows = tx
        .query_rows(
            "SELECT blob_id FROM contexture.blobs WHERE conversation = $1",
            params![conv.key],
        )
        .await?;
    let blobs = rows
        .iter()
        .map(|row| get_bytes(row, 0).map(BlobId::from_bytes));
    let mut blobs = blobs.collect::<Result<BTreeSet<BlobId>, RowError>>()?;
    for sql in [ITEMS, VALUES] {
        // All blobs are named, so the rest need not be read.
        if blobs.is_empty() {
            break;
        }
        let mut rows = std::pin::pin!(tx.query_stream(sql, params![conv.key]).await?);
        while let Some(row) = rows.try_next().await? {
            let text: &[u8] = get_column(&row, 0)?;
            let hash = ContentHash::from_bytes(get_bytes(&row, 1)?);
            if get_column::<i16>(&row, 2)? != CODEC_PLAIN || ContentHash::of(text) != hash {
                let why = "its bytes do not match their hash";
                return Err(conv
                    .damaged_error("node", get_column::<&str>(&row, 3)?, why)
                    .into());
            }
            remove_named(&mut blobs, text);
        }
    }
    if !blobs.is_empty() {
        let read = |value: &[u8]| remove_named(&mut blobs, value);
        key_values::read_values(tx, &conv, read).await?;
    }
    Ok(UnnamedBlobs {
        next_event: conv.next_event,
        value_writes,
        blobs,
    })
}

/// Removes from a list those that a text names. Any text that looks like an id protects its blob.
fn remove_named(blobs: &mut BTreeSet<BlobId>, text: &[u8]) {
    for name in BlobId::find_in_text(&String::from_utf8_lossy(text)) {
        blobs.remove(&name);
    }
}

/// Removes blobs that have been unnamed for the grace period, and marks the others as unnamed.
pub(crate) async fn remove_unnamed_blobs(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    unnamed: &UnnamedBlobs,
    request: CollectRequest,
) -> Result<Collected, RowError> {
    let conv = ConversationRow::load_for_update(tx, owner, id).await?;
    // Every append records an event, and may name a blob that the reader found unnamed, as may a new value. Writers of either
    // lock the conversation.
    let is_unchanged = conv.next_event == unnamed.next_event
        && key_values::count_writes(tx, &conv).await? == unnamed.value_writes;
    if !is_unchanged {
        let why = "the conversation was written to meanwhile".to_owned();
        return Err(Error::Busy { why }.into());
    }
    let key = ConversationKey::of(owner, id).into_bytes();
    // A blob that was stored again since has no mark any more.
    let rows = tx
        .query_rows(
            "SELECT blob_id, unnamed_ms, pg_column_size(bytes) FROM contexture.blobs \
             WHERE conversation = $1 AND blob_id = ANY ($2) ORDER BY blob_id",
            params![key, Vec::from_iter(unnamed.blobs.iter().copied())],
        )
        .await?;
    let sorted = sort_by_age(&rows, request)?;
    tx.execute_on_commit(
        "UPDATE contexture.blobs SET unnamed_ms = $3 WHERE conversation = $1 AND blob_id = ANY ($2)",
        params![key, sorted.unmarked, request.now_ms],
    );
    tx.execute_on_commit(
        "DELETE FROM contexture.blobs WHERE conversation = $1 AND blob_id = ANY ($2)",
        params![key, sorted.due],
    );
    Ok(sorted.collected)
}

/// Unnamed blobs, grouped by what to do with them.
#[derive(Default)]
struct SortedBlobs {
    collected: Collected,
    /// Blobs to remove.
    due: Vec<BlobId>,
    /// Blobs to mark with the current time.
    unmarked: Vec<BlobId>,
}

fn sort_by_age(rows: &[Row], request: CollectRequest) -> Result<SortedBlobs, RowError> {
    let mut sorted = SortedBlobs::default();
    let collected = &mut sorted.collected;
    for row in rows {
        let blob = BlobId::from_bytes(get_bytes(row, 0)?);
        // A mark in the future means that the clock was set back: the grace period starts again.
        let since: Option<i64> = get_column(row, 1)?;
        let since = since.filter(|since| *since <= request.now_ms);
        if since.is_none() {
            sorted.unmarked.push(blob);
        }
        let is_due =
            since.is_some_and(|since| since.saturating_add(request.grace_ms) <= request.now_ms);
        if !is_due {
            collected.waiting += 1;
        } else if sorted.due.len() >= request.limit {
            // The next call removes what exceeds the limit.
            collected.more = true;
        } else {
            let size: i32 = get_column(row, 2)?;
            collected.blobs.count += 1;
            collected.blobs.bytes += u64::try_from(size).unwrap_or(0);
            sorted.due.push(blob);
        }
    }
    Ok(sorted)
}
