//! Redaction in rows.

use contexture_ir::{ContentHash, NodeId, redacted_json};
use contexture_store::{BlobId, Error, EventKind, RedactRequest, Redacted, Thing};
use rusqlite::{Connection, OptionalExtension, params};

use crate::codec;
use crate::columns;
use crate::conv::Conv;
use crate::event;
use crate::fault::Fault;
use crate::stream;

/// Replaces nodes by tombstones, removes state values and blobs; `request` is within the limits.
pub(crate) fn redact(
    conn: &Connection,
    conv: &mut Conv,
    request: &RedactRequest,
) -> Result<Redacted, Fault> {
    let mut done = Redacted::default();
    for id in &request.nodes {
        if bury(conn, conv, *id, request.at_ms)? {
            done.nodes += 1;
            let kind = EventKind::NodeRedacted { node: *id };
            event::record(conn, conv, request.at_ms, &kind)?;
        }
    }
    for hash in &request.values {
        done.values += u64::from(remove_value(conn, conv, hash)?);
    }
    for blob in &request.blobs {
        done.blobs += u64::from(remove_blob(conn, conv, blob)?);
    }
    stream::remove_ended(conn, conv)?;
    let count = done.values + done.blobs;
    if count > 0 {
        let kind = EventKind::BytesRedacted { count };
        event::record(conn, conv, request.at_ms, &kind)?;
    }
    if done != Redacted::default() {
        conv.save(conn)?;
    }
    Ok(done)
}

/// Replaces a node's item, readable or not; `false` if that was done before.
fn bury(conn: &Connection, conv: &Conv, id: NodeId, at_ms: i64) -> Result<bool, Fault> {
    let row = conn
        .prepare_cached(
            "SELECT id, redacted_ms IS NOT NULL, codec, item FROM nodes \
             WHERE id >> 32 = ? AND node_id = ?",
        )?
        .query_row(params![conv.no, id.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let (key, redacted, codec, stored): (i64, bool, u8, Vec<u8>) =
        row.ok_or_else(|| Error::not_found(Thing::Node, id))?;
    if redacted {
        return Ok(false);
    }
    let item = codec::unpack(codec, &stored).unwrap_or_default();
    let tombstone = redacted_json(&String::from_utf8_lossy(&item));
    conn.prepare_cached(
        "UPDATE nodes SET item = ?, content_hash = ?, meaning_hash = NULL, codec = 0, \
         key_id = NULL, redacted_ms = ? WHERE id = ?",
    )?
    .execute(params![
        tombstone.as_bytes(),
        ContentHash::of(tombstone.as_bytes()).as_bytes(),
        at_ms,
        key
    ])?;
    columns::seal(conn, key)?;
    Ok(true)
}

/// The row stays, empty: that tells a value that was removed from one that is missing.
fn remove_value(conn: &Connection, conv: &Conv, hash: &ContentHash) -> Result<bool, Fault> {
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

/// A state value that is kept as this blob goes with it.
fn remove_blob(conn: &Connection, conv: &Conv, blob: &BlobId) -> Result<bool, Fault> {
    conn.prepare_cached(
        "UPDATE state_values SET blob_id = NULL WHERE conversation_no = ? AND blob_id = ?",
    )?
    .execute(params![conv.no, blob.as_bytes()])?;
    let removed = conn
        .prepare_cached("DELETE FROM blobs WHERE conversation_no = ? AND blob_id = ?")?
        .execute(params![conv.no, blob.as_bytes()])?;
    Ok(removed > 0)
}
