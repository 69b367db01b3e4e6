//! Response records as rows.

use std::collections::BTreeMap;

use contexture_ir::{NodeId, ResponseId};
use contexture_store::rules::first_on_path;
use contexture_store::{EntityKind, Error, ResponseInputs, ResponseRecord, ResponseStatus};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::RowError;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::{NodePosition, key_range, load_stretches, packed_key};
use crate::rows::{codec, node_row};

/// Stores the record of a new response.
pub(crate) fn insert_response(
    conn: &Connection,
    conv: &ConversationRow,
    record: &ResponseRecord,
) -> Result<(), RowError> {
    let existing: Option<i64> = conn
        .prepare_cached("SELECT id FROM responses WHERE id >> 32 = ? AND response_id = ?")?
        .query_row(params![conv.no, record.id.as_bytes()], |row| row.get(0))
        .optional()?;
    if existing.is_some() {
        return Err(Error::already_exists(EntityKind::Response, record.id).into());
    }
    if let Some(base) = record.base {
        node_row::load_tip(conn, conv.no, base)?;
    }
    let (codec, inputs) = match record.inputs.to_column() {
        Some(bytes) => {
            let (codec, packed) = codec::encode_bytes(bytes);
            (codec, Some(packed))
        }
        None => (codec::PLAIN, None),
    };
    let (first, last) = key_range(conv.no);
    let newest: Option<i64> = conn
        .prepare_cached("SELECT max(id) FROM responses WHERE id BETWEEN ? AND ?")?
        .query_row([first, last], |row| row.get(0))?;
    conn.prepare_cached(
        "INSERT INTO responses VALUES (?, ?, NULL, NULL, ?, ?, ?, NULL, NULL, ?, ?, NULL, ?, ?)",
    )?
    .execute(params![
        newest.unwrap_or(first) + 1,
        record.id.as_bytes(),
        record.base.as_ref().map(NodeId::as_bytes),
        record.status.code(),
        record.model,
        inputs,
        record.usage.as_ref().map(|usage| usage.as_bytes()),
        record.finished_ms,
        codec,
    ])?;
    Ok(())
}

/// Columns of a record, after the number of its row.
macro_rules! columns {
    () => {
        "id, response_id, base_node, status, model, usage, codec, inputs, finished_ms FROM responses"
    };
}

/// Reads the records of a conversation between two row numbers, for a check.
pub(crate) const VERIFY: &str = concat!(
    "SELECT ",
    columns!(),
    " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
);

/// Checks that a record can be read and that the node it was computed from exists.
pub(crate) fn verify_response(
    conn: &Connection,
    conv: &ConversationRow,
    row: &Row<'_>,
) -> Result<(), RowError> {
    match decode_response(conv, row)?.base {
        Some(base) => node_row::load_tip(conn, conv.no, base).map(drop),
        None => Ok(()),
    }
}

/// Reads the record of a response.
pub(crate) fn load_response(
    conn: &Connection,
    conv: &ConversationRow,
    id: ResponseId,
) -> Result<ResponseRecord, RowError> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " WHERE id >> 32 = ? AND response_id = ?"
    ))?;
    let mut rows = statement.query(params![conv.no, id.as_bytes()])?;
    let row = rows
        .next()?
        .ok_or_else(|| Error::not_found(EntityKind::Response, id))?;
    decode_response(conv, row)
}

fn decode_response(conv: &ConversationRow, row: &Row<'_>) -> Result<ResponseRecord, RowError> {
    let id = ResponseId::from_bytes(row.get(1)?);
    let damaged = |why: &str| conv.damaged_error("response", id, why);
    let base: Option<[u8; 16]> = row.get(2)?;
    let usage = row.get_ref(5)?.as_blob_or_null()?.map(std::str::from_utf8);
    let usage = usage
        .transpose()
        .map_err(|_| damaged("its usage is not UTF-8"))?;
    let inputs = row.get_ref(7)?.as_blob_or_null()?;
    let inputs = inputs.map(|stored| codec::decode_bytes(row.get(6).unwrap_or(u8::MAX), stored));
    let inputs = inputs.transpose().map_err(damaged)?;
    Ok(ResponseRecord {
        id,
        base: base.map(NodeId::from_bytes),
        status: ResponseStatus::from_code(row.get(3)?).ok_or_else(|| damaged("unknown status"))?,
        model: row.get(4)?,
        usage: usage.map(Into::into),
        inputs: ResponseInputs::from_column(inputs.as_deref()),
        finished_ms: row.get::<_, Option<i64>>(8)?.unwrap_or_default(),
    })
}

/// Removes the inputs of the responses whose path has a node at one of these positions.
pub(crate) fn remove_inputs(
    conn: &Connection,
    conv: &ConversationRow,
    nodes: &[NodePosition],
) -> Result<(), RowError> {
    if nodes.is_empty() {
        return Ok(());
    }
    let positions: Vec<(u32, u32)> = nodes.iter().map(|at| (at.segment, at.depth)).collect();
    let (first, last) = key_range(conv.no);
    let rows = conn
        .prepare_cached(
            "SELECT id, base_node FROM responses WHERE id BETWEEN ? AND ? \
             AND length(inputs) > 0 AND base_node IS NOT NULL",
        )?
        .query_map([first, last], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(i64, [u8; 16])>, _>>()?;
    // Responses with bases on one segment share its path, so it is loaded once for all of them.
    let mut by_segment: BTreeMap<u32, Vec<(u32, i64)>> = BTreeMap::new();
    for (row, base) in rows {
        let at = node_row::load_tip(conn, conv.no, NodeId::from_bytes(base))?.position;
        by_segment
            .entry(at.segment)
            .or_default()
            .push((at.depth, row));
    }
    for (segment, rows) in by_segment {
        let depth = rows.iter().map(|(depth, _)| *depth).max().unwrap_or(0);
        let path = load_stretches(conn, conv.no, NodePosition { segment, depth }, 1, depth)?;
        let path: Vec<_> = path.iter().map(|on| (on.segment, on.from, on.to)).collect();
        let Some(first_affected) = first_on_path(&path, &positions) else {
            continue;
        };
        for (_, row) in rows.iter().filter(|(depth, _)| *depth >= first_affected) {
            conn.prepare_cached("UPDATE responses SET codec = 0, inputs = x'' WHERE id = ?")?
                .execute([row])?;
        }
    }
    Ok(())
}

/// Removes the inputs of all responses of a conversation.
pub(crate) fn remove_all_inputs(conn: &Connection, conv: &ConversationRow) -> Result<(), RowError> {
    conn.prepare_cached(
        "UPDATE responses SET codec = 0, inputs = x'' WHERE id BETWEEN ? AND ? \
         AND length(inputs) > 0",
    )?
    .execute([packed_key(conv.no, 0), packed_key(conv.no, u32::MAX)])?;
    Ok(())
}
