//! Redaction: replaces nodes by tombstones, and removes state values and blobs.

use contexture_ir::{ContentHash, NodeId, tombstone_json};
use contexture_store::{BlobId, EntityKind, Error, EventKind, RedactRequest, Redacted};
use rusqlite::{Connection, OptionalExtension, params};

use crate::calls;
use crate::error::RowError;
use crate::key_values;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_columns::{self, NodeColumns};
use crate::rows::path::NodePosition;
use crate::rows::{codec, event, node_row, response};
use crate::streams;

/// Replaces nodes by tombstones, removes state values and blobs; `request` is within the limits.
pub(crate) fn redact_content(
    conn: &Connection,
    conv: &mut ConversationRow,
    request: &RedactRequest,
) -> Result<Redacted, RowError> {
    let mut done = Redacted::default();
    let mut changed = Vec::new();
    for id in &request.nodes {
        if let Some(at) = write_tombstone(conn, conv, *id, request.at_ms)? {
            done.nodes += 1;
            changed.extend(at);
            let kind = EventKind::NodeRedacted { node: *id };
            event::record_event(conn, conv, request.at_ms, &kind)?;
        }
    }
    for hash in &request.values {
        done.values += u64::from(remove_value(conn, conv, hash)?);
    }
    for blob in &request.blobs {
        done.blobs += u64::from(remove_blob(conn, conv, blob)?);
    }
    streams::remove_ended_streams(conn, conv)?;
    let count = done.values + done.blobs;
    match count {
        0 => response::remove_inputs(conn, conv, &changed)?,
        _ => response::remove_all_inputs(conn, conv)?,
    }
    if count > 0 {
        let kind = EventKind::BytesRedacted { count };
        event::record_event(conn, conv, request.at_ms, &kind)?;
    }
    if done != Redacted::default() {
        // Nothing tells which of them have the text.
        calls::remove_bodies(conn, conv.no)?;
        key_values::remove_derived(conn, conv, request.at_ms)?;
        conv.save(conn)?;
    }
    Ok(done)
}

/// Replaces a node's item, readable or not. Returns `None` if it was replaced before, else its
/// position if the item's content changed.
fn write_tombstone(
    conn: &Connection,
    conv: &ConversationRow,
    id: NodeId,
    at_ms: i64,
) -> Result<Option<Option<NodePosition>>, RowError> {
    let sql = node_row::by_id_sql();
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![conv.no, id.as_bytes()])?;
    let row = rows
        .next()?
        .ok_or_else(|| Error::not_found(EntityKind::Node, id))?;
    let (key, redacted): (i64, Option<i64>) = (row.get("id")?, row.get("redacted_ms")?);
    if redacted.is_some() {
        return Ok(None);
    }
    let (rest, tombstone, changed) = match NodeColumns::from_row(row)? {
        Some((columns, _)) => {
            let at = columns.position();
            let before = columns.ids[node_columns::CONTENT_HASH].copied();
            let (rest, tombstone) = tombstone_columns(columns, at_ms);
            let hash = ContentHash::of(tombstone.as_bytes());
            let changed = before.as_ref() != Some(hash.as_bytes());
            (rest, tombstone, changed.then_some(at))
        }
        // The row stays damaged, but without its content.
        None => {
            response::remove_all_inputs(conn, conv)?;
            (Vec::new(), tombstone_json(""), None)
        }
    };
    conn.prepare_cached(
        "UPDATE nodes SET codec = ?, redacted_ms = ?, rest = ?, item = ? WHERE id = ?",
    )?
    .execute(params![
        codec::PLAIN,
        at_ms,
        rest,
        tombstone.as_bytes(),
        key
    ])?;
    Ok(Some(changed))
}

/// Returns the packed columns and the item of a row's tombstone.
fn tombstone_columns(mut columns: NodeColumns<'_>, at_ms: i64) -> (Vec<u8>, String) {
    let codec = columns.numbers[node_columns::CODEC].and_then(|codec| u8::try_from(codec).ok());
    let item = codec::decode_bytes(codec.unwrap_or(u8::MAX), columns.item).unwrap_or_default();
    let tombstone = tombstone_json(&String::from_utf8_lossy(&item));
    let hash = ContentHash::of(tombstone.as_bytes());
    columns.numbers[node_columns::REDACTED_MS] = Some(at_ms);
    columns.numbers[node_columns::CODEC] = Some(codec::PLAIN.into());
    columns.numbers[node_columns::KEY_ID] = None;
    columns.ids[node_columns::MEANING_HASH] = None;
    let columns = NodeColumns {
        ids: {
            let mut ids = columns.ids;
            ids[node_columns::CONTENT_HASH] = Some(hash.as_bytes());
            ids
        },
        item: tombstone.as_bytes(),
        ..columns
    };
    (columns.pack_rest(Some(columns.checksum())), tombstone)
}

/// Removes a state value. Its row stays, empty, to tell a redacted value from a missing one.
fn remove_value(
    conn: &Connection,
    conv: &ConversationRow,
    hash: &ContentHash,
) -> Result<bool, RowError> {
    let blob: Option<Option<[u8; 16]>> = conn
        .prepare_cached(
            "SELECT blob_id FROM state_values WHERE conversation_no = ? AND hash = ? \
             AND (value IS NOT NULL OR blob_id IS NOT NULL)",
        )?
        .query_row(params![conv.no, hash.as_bytes()], |row| row.get(0))
        .optional()?;
    let Some(blob) = blob else { return Ok(false) };
    conn.prepare_cached(
        "UPDATE state_values SET value = NULL, blob_id = NULL \
         WHERE conversation_no = ? AND hash = ?",
    )?
    .execute(params![conv.no, hash.as_bytes()])?;
    if let Some(blob) = blob {
        remove_blob(conn, conv, &BlobId::from_bytes(blob))?;
    }
    Ok(true)
}

/// Removes a blob, and the state value that is stored as this blob.
fn remove_blob(conn: &Connection, conv: &ConversationRow, blob: &BlobId) -> Result<bool, RowError> {
    conn.prepare_cached(
        "UPDATE state_values SET blob_id = NULL WHERE conversation_no = ? AND blob_id = ?",
    )?
    .execute(params![conv.no, blob.as_bytes()])?;
    let removed = conn
        .prepare_cached("DELETE FROM blobs WHERE conversation_no = ? AND blob_id = ?")?
        .execute(params![conv.no, blob.as_bytes()])?;
    Ok(removed > 0)
}
