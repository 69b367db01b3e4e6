//! State roots and their values as rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::ContentHash;
use contexture_store::rules::{Merged, decode_root, encode_root};
use contexture_store::{BlobId, Error, NodeState, StateRequest, StateRoot, StateValues};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::RowError;
use crate::rows::conversation_row::{ConversationRow, next_number};
use crate::rows::path::packed_key;
use crate::rows::{blob, codec};

/// Largest value that is stored beside its hash, in bytes; larger ones are blobs.
const INLINE_BYTES: usize = 4096;

/// A root, and what is needed to store the next one.
pub(crate) struct LoadedRoot {
    pub(crate) root: StateRoot,
    /// Bytes of differences since the last full root; `None` for the empty root.
    pub(crate) since_whole: Option<usize>,
}

/// Reads a root: its last full record and the differences after it.
pub(crate) fn load_root(
    conn: &Connection,
    conv: &ConversationRow,
    root_no: u32,
) -> Result<LoadedRoot, RowError> {
    let mut records: Vec<Vec<u8>> = Vec::new();
    let mut since_whole = None;
    let mut next = (root_no != 0).then_some(root_no);
    let mut statement =
        conn.prepare_cached("SELECT base, since_whole, body_check, body FROM roots WHERE id = ?")?;
    while let Some(number) = next {
        let damaged = |why: &str| conv.damaged_error("state", format!("root {number}"), why);
        let row = statement
            .query_row([packed_key(conv.no, number)], |row| {
                Ok((
                    row.get::<_, Option<u32>>(0)?,
                    row.get::<_, u32>(1)?,
                    row.get::<_, [u8; 8]>(2)?,
                    row.get::<_, Vec<u8>>(3)?,
                ))
            })
            .optional()?;
        let (base, since, check, body) = row.ok_or_else(|| damaged("it is missing"))?;
        if check != body_check(&body) {
            return Err(damaged("its bytes do not match their hash").into());
        }
        // Roots are numbered in order of creation; the check makes the walk end even in a damaged
        // file.
        if base.is_some_and(|base| base >= number) {
            return Err(damaged("it is based on a later one").into());
        }
        since_whole.get_or_insert(usize::try_from(since).unwrap_or(usize::MAX));
        records.push(body);
        next = base;
    }
    let root = decode_root(&records).ok_or_else(|| {
        conv.damaged_error("state", format!("root {root_no}"), "it does not decode")
    })?;
    Ok(LoadedRoot { root, since_whole })
}

/// Stores the root that a patch made of the root `base_no`; returns its number.
pub(crate) fn store_root(
    conn: &Connection,
    conv: &mut ConversationRow,
    base_no: u32,
    since_whole: Option<usize>,
    merged: &Merged,
) -> Result<u32, RowError> {
    for (hash, value) in &merged.values {
        store_value(conn, conv, hash, value)?;
    }
    // Usually stored as a difference. `since_whole` bounds the bytes of differences that a read
    // goes through before a full record is written again.
    let record = encode_root(&merged.root, &merged.changed, since_whole);
    let number = next_number(&mut conv.next_root, 1, "state roots")?;
    conn.prepare_cached("INSERT INTO roots VALUES (?, ?, ?, ?, ?)")?
        .execute(params![
            packed_key(conv.no, number),
            (!record.whole).then_some(base_no),
            u32::try_from(record.since_whole).unwrap_or(u32::MAX),
            body_check(&record.body),
            record.body
        ])?;
    Ok(number)
}

fn store_value(
    conn: &Connection,
    conv: &ConversationRow,
    hash: &ContentHash,
    value: &[u8],
) -> Result<(), RowError> {
    let blob: Option<BlobId> = if value.len() > INLINE_BYTES {
        Some(blob::put_blob(conn, conv, value)?)
    } else {
        None
    };
    let (codec, stored) = match blob {
        Some(_) => (codec::PLAIN, None),
        None => {
            let (codec, stored) = codec::encode_bytes(value);
            (codec, Some(stored))
        }
    };
    // A redacted value that is written again is stored again.
    conn.prepare_cached(
        "INSERT INTO state_values VALUES (?1, ?2, ?3, NULL, ?4, ?5) \
         ON CONFLICT DO UPDATE SET codec = ?3, value = ?4, blob_id = ?5 \
         WHERE value IS NULL AND blob_id IS NULL",
    )?
    .execute(params![
        conv.no,
        hash.as_bytes(),
        codec,
        stored,
        blob.as_ref().map(BlobId::as_bytes)
    ])?;
    Ok(())
}

/// Reads the state of a root.
pub(crate) fn read_state(
    conn: &Connection,
    conv: &ConversationRow,
    root_no: u32,
    request: &StateRequest,
) -> Result<NodeState, RowError> {
    // Differences can only be applied in order, so the whole root is built before the prefix
    // filters it.
    let mut root = load_root(conn, conv, root_no)?.root;
    root.retain(|key, _| key.as_str().starts_with(&request.prefix));
    let mut values = BTreeMap::new();
    if request.values == StateValues::Load {
        for (key, entry) in &root {
            let damaged = || conv.damaged_error("state", key, "its value is missing or damaged");
            if let Some(value) = load_value(conn, conv, &entry.hash, damaged)? {
                values.insert(entry.hash, value);
            }
        }
    }
    Ok(NodeState { root, values })
}

/// Reads a value; returns `None` if it was redacted.
pub(crate) fn load_value(
    conn: &Connection,
    conv: &ConversationRow,
    hash: &ContentHash,
    damaged: impl Fn() -> Error,
) -> Result<Option<Arc<[u8]>>, RowError> {
    let mut statement = conn.prepare_cached(
        "SELECT codec, value, blob_id FROM state_values WHERE conversation_no = ? AND hash = ?",
    )?;
    let mut rows = statement.query(params![conv.no, hash.as_bytes()])?;
    let row = rows.next()?.ok_or_else(&damaged)?;
    let stored = row.get_ref(1)?.as_blob_or_null()?;
    let value: Arc<[u8]> = match (stored, row.get::<_, Option<[u8; 16]>>(2)?) {
        (Some(stored), _) => codec::decode_bytes(row.get(0)?, stored)
            .map_err(|_| damaged())?
            .into(),
        (None, Some(id)) => blob::read_blob(conn, conv, BlobId::from_bytes(id))?,
        (None, None) => return Ok(None),
    };
    // The hash serves as the checksum too.
    if ContentHash::of(&value) != *hash {
        return Err(damaged().into());
    }
    Ok(Some(value))
}

fn body_check(body: &[u8]) -> [u8; 8] {
    crate::rows::blob::row_checksum(body)
}
