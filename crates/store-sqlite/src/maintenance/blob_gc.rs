//! Garbage collection of blobs that nothing in their conversation names any more.
//!
//! A blob may be stored before the item that names it, so an unnamed one may still get its item.
//! Collecting therefore takes two passes: a blob is first marked with the time since which it is
//! unnamed, and removed by a later call after the grace period.
//!
//! Finding the names reads every item and value, which takes long, so it runs in a read transaction. The
//! writer only checks that nothing was written since and removes rows.

use std::collections::{BTreeMap, BTreeSet};

use contexture_store::{BlobId, CollectRequest, Collected, Error};
use rusqlite::{Connection, params};

use super::statistics::unsigned_column;
use crate::error::RowError;
use crate::key_values;
use crate::rows::blob;
use crate::rows::codec;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::key_range;

/// Blobs that nothing names, as a reader found them.
pub(crate) struct UnnamedBlobs {
    /// Number of the conversation's next event at that time: while it is the same, nobody has appended.
    next_event: u32,
    /// How often its values outside the tree had been written.
    value_writes: i64,
    /// Unnamed blobs by the number of their row, the column `no`.
    blobs: BTreeMap<i64, UnnamedBlob>,
}

struct UnnamedBlob {
    bytes: u64,
    /// Time since which the blob is marked as unnamed, in milliseconds since the Unix epoch; `None`
    /// if it is not marked.
    since_ms: Option<i64>,
}

/// Finds the blobs that no item, no state value and no value outside the tree of the conversation names.
pub(crate) fn find_unnamed_blobs(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<UnnamedBlobs, RowError> {
    let mut blobs = BTreeMap::new();
    let mut statement = conn.prepare_cached(
        "SELECT blob_id, no, length(bytes), unnamed_ms FROM blobs WHERE conversation_no = ?",
    )?;
    let mut rows = statement.query([conv.no])?;
    while let Some(row) = rows.next()? {
        let unneeded = UnnamedBlob {
            bytes: unsigned_column(row, 2)?,
            since_ms: row.get(3)?,
        };
        let no: i64 = row.get(1)?;
        blobs.insert(BlobId::from_bytes(row.get(0)?), (no, unneeded));
    }
    // Without blobs, the items need not be read.
    if !blobs.is_empty() {
        for name in collect_blob_names(conn, conv)? {
            blobs.remove(&name);
        }
    }
    Ok(UnnamedBlobs {
        next_event: conv.next_event,
        value_writes: key_values::count_writes(conn, conv)?,
        blobs: blobs.into_values().collect(),
    })
}

/// Collects the ids of all blobs that an item or a value names or is stored as. An unreadable row is an error, since it could
/// name any blob.
fn collect_blob_names(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<BTreeSet<BlobId>, RowError> {
    let mut names = BTreeSet::new();
    key_values::read_values(conn, conv, |value| {
        names.extend(BlobId::find_in_text(&String::from_utf8_lossy(value)));
    })?;
    let (first, last) = key_range(conv.no);
    let items = "SELECT codec, item, id FROM nodes WHERE id BETWEEN ?1 AND ?2";
    let values = "SELECT codec, coalesce(value, x''), 0, blob_id FROM state_values \
                  WHERE conversation_no = ?1 AND ?2 = ?2";
    let of_items: (&str, [i64; 2]) = (items, [first, last]);
    for (sql, bound) in [of_items, (values, [conv.no.into(), 0])] {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query(bound)?;
        while let Some(row) = rows.next()? {
            let damaged = |why: &str| {
                let number = row.get::<_, i64>(2).unwrap_or_default() as u32;
                conv.damaged_error("node", format!("row {number}"), why)
            };
            let stored = row.get_ref(1)?.as_blob()?;
            let plain = codec::decode_bytes(row.get(0)?, stored).map_err(damaged)?;
            // Any text that looks like an id protects its blob: keeping one too many costs space,
            // removing one too many loses data.
            names.extend(BlobId::find_in_text(&String::from_utf8_lossy(&plain)));
            if sql == values {
                // A large value is stored as a blob, and may name others.
                if let Some(id) = row.get::<_, Option<[u8; 16]>>(3)?.map(BlobId::from_bytes) {
                    let value = blob::read_blob(conn, conv, id)?;
                    names.extend(BlobId::find_in_text(&String::from_utf8_lossy(&value)));
                    names.insert(id);
                }
            }
        }
    }
    Ok(names)
}

/// Removes blobs that have been unnamed for the grace period, and marks the others as unnamed.
pub(crate) fn remove_unnamed_blobs(
    conn: &Connection,
    conv: &ConversationRow,
    unnamed: &UnnamedBlobs,
    request: CollectRequest,
) -> Result<Collected, RowError> {
    // Every append records an event. Without a new one and without a new value, nothing new can name any of these blobs.
    let is_unchanged = conv.next_event == unnamed.next_event
        && key_values::count_writes(conn, conv)? == unnamed.value_writes;
    if !is_unchanged {
        return Err(Error::Busy {
            why: "the conversation was written to meanwhile".to_owned(),
        }
        .into());
    }
    // A mark in the future means that the clock was set back: the grace period starts again.
    conn.prepare_cached(
        "UPDATE blobs SET unnamed_ms = NULL WHERE conversation_no = ? AND unnamed_ms IS NOT NULL \
         AND unnamed_ms > ?",
    )?
    .execute(params![conv.no, request.now_ms])?;
    let mut collected = Collected::default();
    for (no, blob) in &unnamed.blobs {
        if !is_due(blob, request) {
            mark_unnamed(conn, *no, request.now_ms)?;
            collected.waiting += 1;
        } else if collected.blobs.count >= request.limit as u64 {
            collected.more = true;
        } else if remove_blob(conn, *no, blob)? {
            collected.blobs.count += 1;
            collected.blobs.bytes += blob.bytes;
        }
    }
    Ok(collected)
}

/// Returns whether a blob has been unnamed for the grace period.
fn is_due(blob: &UnnamedBlob, request: CollectRequest) -> bool {
    blob.since_ms
        .is_some_and(|since| since.saturating_add(request.grace_ms) <= request.now_ms)
}

/// Records the time since which a blob is unnamed, unless it is recorded already.
fn mark_unnamed(conn: &Connection, no: i64, now_ms: i64) -> Result<(), RowError> {
    conn.prepare_cached("UPDATE blobs SET unnamed_ms = ? WHERE no = ? AND unnamed_ms IS NULL")?
        .execute(params![now_ms, no])?;
    Ok(())
}

/// Removes a blob, unless it was stored again since the reader saw it, which clears its mark.
fn remove_blob(conn: &Connection, no: i64, blob: &UnnamedBlob) -> Result<bool, RowError> {
    let removed = conn
        .prepare_cached("DELETE FROM blobs WHERE no = ? AND unnamed_ms = ?")?
        .execute(params![no, blob.since_ms])?;
    Ok(removed > 0)
}
