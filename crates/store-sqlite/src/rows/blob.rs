//! Blobs as rows.

use std::sync::Arc;

use contexture_store::{BlobId, EntityKind, Error};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::RowError;
use crate::rows::codec;
use crate::rows::conversation_row::ConversationRow;

/// Stores bytes, unless they are stored already.
pub(crate) fn put_blob(
    conn: &Connection,
    conv: &ConversationRow,
    bytes: &[u8],
) -> Result<BlobId, RowError> {
    let id = BlobId::of(&conv.owner, bytes);
    let existing: Option<Option<i64>> = conn
        .prepare_cached("SELECT unnamed_ms FROM blobs WHERE conversation_no = ? AND blob_id = ?")?
        .query_row(params![conv.no, id.as_bytes()], |row| row.get(0))
        .optional()?;
    if let Some(Some(_)) = existing {
        // A blob that is stored again is about to be named by an item.
        conn.prepare_cached(
            "UPDATE blobs SET unnamed_ms = NULL WHERE conversation_no = ? AND blob_id = ?",
        )?
        .execute(params![conv.no, id.as_bytes()])?;
    }
    if existing.is_none() {
        let (codec, stored) = codec::encode_bytes(bytes);
        conn.prepare_cached(
            "INSERT INTO blobs (conversation_no, blob_id, codec, size, bytes) \
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![
            conv.no,
            id.as_bytes(),
            codec,
            i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            stored
        ])?;
    }
    Ok(id)
}

/// Reads stored bytes and checks them against their id.
pub(crate) fn read_blob(
    conn: &Connection,
    conv: &ConversationRow,
    id: BlobId,
) -> Result<Arc<[u8]>, RowError> {
    let mut statement = conn.prepare_cached(
        "SELECT codec, bytes FROM blobs WHERE conversation_no = ? AND blob_id = ?",
    )?;
    let mut rows = statement.query(params![conv.no, id.as_bytes()])?;
    let row = rows
        .next()?
        .ok_or_else(|| Error::not_found(EntityKind::Blob, id))?;
    let damaged = |why: &str| conv.damaged_error("blob", id, why);
    let stored = row.get_ref(1)?.as_blob()?;
    let bytes = codec::decode_bytes(row.get(0)?, stored).map_err(damaged)?;
    if BlobId::of(&conv.owner, &bytes) != id {
        return Err(damaged("its bytes do not match their hash").into());
    }
    Ok(bytes.into())
}

/// Returns an eight-byte checksum, for rows that are not addressed by their hash.
pub(crate) fn row_checksum(bytes: &[u8]) -> [u8; 8] {
    let mut check = [0; 8];
    check
        .iter_mut()
        .zip(blake3::hash(bytes).as_bytes())
        .for_each(|(to, from)| *to = *from);
    check
}
