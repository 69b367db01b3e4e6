//! Blobs as rows.

use std::sync::Arc;

use contexture_store::{BlobId, Error, Thing};
use rusqlite::{Connection, OptionalExtension, params};

use crate::conv::Conv;
use crate::fault::Fault;

/// Stores bytes, once.
pub(crate) fn put(conn: &Connection, conv: &Conv, bytes: &[u8]) -> Result<BlobId, Fault> {
    let id = BlobId::of(&conv.owner, bytes);
    let known = conn
        .prepare_cached("SELECT 1 FROM blobs WHERE conversation_no = ? AND blob_id = ?")?
        .exists(params![conv.no, id.as_bytes()])?;
    if !known {
        conn.prepare_cached(
            "INSERT INTO blobs (conversation_no, blob_id, codec, size, bytes) \
             VALUES (?, ?, 0, ?, ?)",
        )?
        .execute(params![
            conv.no,
            id.as_bytes(),
            i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            bytes
        ])?;
    }
    Ok(id)
}

/// Stored bytes, if they are what was stored.
pub(crate) fn get(conn: &Connection, conv: &Conv, id: BlobId) -> Result<Arc<[u8]>, Fault> {
    let bytes: Option<Vec<u8>> = conn
        .prepare_cached("SELECT bytes FROM blobs WHERE conversation_no = ? AND blob_id = ?")?
        .query_row(params![conv.no, id.as_bytes()], |row| row.get(0))
        .optional()?;
    let bytes = bytes.ok_or_else(|| Error::not_found(Thing::Blob, id))?;
    if BlobId::of(&conv.owner, &bytes) != id {
        return Err(conv
            .damaged("blob", id, "its bytes do not match their hash")
            .into());
    }
    Ok(bytes.into())
}

/// Eight bytes that tell damage: for rows that are not addressed by their hash.
pub(crate) fn check(bytes: &[u8]) -> [u8; 8] {
    let mut check = [0; 8];
    check
        .iter_mut()
        .zip(blake3::hash(bytes).as_bytes())
        .for_each(|(to, from)| *to = *from);
    check
}
