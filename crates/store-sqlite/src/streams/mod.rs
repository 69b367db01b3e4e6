//! Streams as rows: the records of running responses and their chunks.
//!
//! Not here: waking readers, and durability.

use std::ops::Range;
use std::sync::Arc;

use contexture_ir::StreamId;
use contexture_store::{
    AppendChunks, ChunkPage, EntityKind, Error, FinishStream, ReadChunks, StreamClaim,
    StreamCursor, StreamEpoch, StreamLimits, StreamOpened, StreamRecord, rules,
};
use rusqlite::{Connection, Row, ToSql, params};
use twox_hash::XxHash3_64;

use crate::error::RowError;
use crate::rows::conversation_row::{ConversationRow, next_number};
use crate::rows::path::{key_range, packed_key};

const COLUMNS: &str = "id, stream, status, cancel, first_chunk, next_chunk, bytes, opened_ms, \
     updated_ms, message";

fn decode_stream(conv: &ConversationRow, row: &Row<'_>) -> Result<StreamRecord, RowError> {
    let count = |column| -> rusqlite::Result<u64> {
        let count: i64 = row.get(column)?;
        Ok(u64::try_from(count).unwrap_or_default())
    };
    let epoch = StreamEpoch(u64::from(row.get::<_, i64>(0)? as u32));
    let message: Option<String> = row.get(9)?;
    let end = rules::stream_end_from_columns(row.get(2)?, message).map_err(|status| {
        conv.damaged_error("stream", epoch, format!("unknown status {status}"))
    })?;
    Ok(StreamRecord {
        id: StreamId::from_bytes(row.get(1)?),
        epoch,
        end,
        cancel_requested: row.get(3)?,
        first: count(4)?,
        next: count(5)?,
        bytes: count(6)?,
        opened_ms: row.get(7)?,
        updated_ms: row.get(8)?,
    })
}

fn save_stream(
    conn: &Connection,
    conv: &ConversationRow,
    record: &StreamRecord,
) -> Result<(), RowError> {
    let (status, message) = rules::stream_end_columns(record.end.as_ref());
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    conn.prepare_cached(&format!(
        // The key contains the epoch, which is never reused, so only the same stream can be
        // replaced.
        "INSERT OR REPLACE INTO streams ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    ))?
    .execute(params![
        row_key(conv, record),
        record.id.as_bytes(),
        status,
        record.cancel_requested,
        count(record.first),
        count(record.next),
        count(record.bytes),
        record.opened_ms,
        record.updated_ms,
        message
    ])?;
    Ok(())
}

fn row_key(conv: &ConversationRow, record: &StreamRecord) -> i64 {
    packed_key(conv.no, epoch_no(record.epoch))
}

/// Converts an epoch; stored ones are below 2^32.
fn epoch_no(epoch: StreamEpoch) -> u32 {
    u32::try_from(epoch.0).unwrap_or(u32::MAX)
}

/// Lists the streams of a conversation, the most recently opened last.
pub(crate) fn list_streams(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<Vec<StreamRecord>, RowError> {
    let mut statement = conn.prepare_cached(&list_sql())?;
    let (first, last) = key_range(conv.no);
    let mut rows = statement.query([first, last])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(decode_stream(conv, row)?);
    }
    Ok(all)
}

pub(crate) fn list_sql() -> String {
    format!("SELECT {COLUMNS} FROM streams WHERE id BETWEEN ? AND ? ORDER BY id")
}

fn find_stream(
    conn: &Connection,
    conv: &ConversationRow,
    stream: StreamId,
) -> Result<StreamRecord, RowError> {
    // A conversation has few streams (running ones and a bounded number of ended ones), so a scan
    // of its range is cheaper than an index that every write would have to maintain.
    let all = list_streams(conn, conv)?;
    let found = all.into_iter().find(|one| one.id == stream);
    found.ok_or_else(|| Error::not_found(EntityKind::Stream, stream).into())
}

/// Opens a stream with a new epoch.
pub(crate) fn open_stream(
    conn: &Connection,
    conv: &ConversationRow,
    stream: StreamId,
    at_ms: i64,
    limits: &StreamLimits,
) -> Result<StreamOpened, RowError> {
    let replaced = rules::plan_opening(list_streams(conn, conv)?, stream, limits)?;
    for gone in replaced.before.iter().chain(&replaced.surplus) {
        remove_stream(conn, conv, gone)?;
    }
    let stream = StreamRecord::new(stream, next_epoch(conn, conv)?, at_ms);
    save_stream(conn, conv, &stream)?;
    Ok(StreamOpened {
        stream,
        before: replaced.before,
    })
}

fn next_epoch(conn: &Connection, conv: &ConversationRow) -> Result<StreamEpoch, RowError> {
    // Epochs are counted per conversation: if a deleted stream is opened again with its old id, its
    // new epoch must be new, or cursors of its old readers would match the new chunks.
    let mut next: u32 = conn
        .prepare_cached("SELECT next_epoch FROM conversations WHERE no = ?")?
        .query_row([conv.no], |row| row.get(0))?;
    let epoch = next_number(&mut next, 1, "epochs")?;
    conn.prepare_cached("UPDATE conversations SET next_epoch = ? WHERE no = ?")?
        .execute([next, conv.no])?;
    Ok(StreamEpoch(u64::from(epoch)))
}

/// Appends chunks; `append` is within the limits of one call already.
pub(crate) fn append_chunks(
    conn: &Connection,
    conv: &ConversationRow,
    append: &AppendChunks,
    limits: &StreamLimits,
) -> Result<StreamRecord, RowError> {
    let mut stream = find_stream(conn, conv, append.claim.stream)?;
    // A repeated call contains chunks that are stored already. Comparing them tells a repetition
    // from a second writer.
    let stored = load_chunks(
        conn,
        conv,
        &stream,
        rules::stored_chunk_range(&stream, append),
    )?;
    let stored = rules::check_chunk_append(&stream, append, &stored, limits)?;
    let new = append.chunks.get(stored..).unwrap_or_default();
    if new.is_empty() {
        return Ok(stream);
    }
    let mut statement = conn.prepare_cached("INSERT INTO stream_chunks VALUES (?, ?, ?, ?, ?)")?;
    for chunk in new {
        statement.execute(params![
            conv.no,
            epoch_no(stream.epoch),
            i64::try_from(stream.next).unwrap_or(i64::MAX),
            chunk_checksum(&stream, stream.next, chunk),
            chunk
        ])?;
        stream.next += 1;
        stream.bytes += chunk.len() as u64;
    }
    stream.updated_ms = append.at_ms;
    save_stream(conn, conv, &stream)?;
    Ok(stream)
}

/// Ends a stream.
pub(crate) fn finish_stream(
    conn: &Connection,
    conv: &ConversationRow,
    finish: &FinishStream,
) -> Result<StreamRecord, RowError> {
    let mut stream = find_stream(conn, conv, finish.claim.stream)?;
    if rules::finish_record(&mut stream, finish)? {
        save_stream(conn, conv, &stream)?;
    }
    Ok(stream)
}

/// Asks the stream's writer to stop.
pub(crate) fn cancel_stream(
    conn: &Connection,
    conv: &ConversationRow,
    stream: StreamId,
    at_ms: i64,
) -> Result<StreamRecord, RowError> {
    let mut stream = find_stream(conn, conv, stream)?;
    if rules::cancel_record(&mut stream, at_ms) {
        save_stream(conn, conv, &stream)?;
    }
    Ok(stream)
}

/// Completes a stream whose response is in the tree, and removes its chunks.
pub(crate) fn complete_stream(
    conn: &Connection,
    conv: &ConversationRow,
    claim: StreamClaim,
    at_ms: i64,
) -> Result<(), RowError> {
    let mut stream = find_stream(conn, conv, claim.stream)?;
    rules::check_claim(&stream, claim)?;
    remove_chunks(conn, conv, &stream)?;
    rules::complete_record(&mut stream, at_ms);
    save_stream(conn, conv, &stream)
}

/// Reads chunks from a cursor on.
pub(crate) fn read_chunks(
    conn: &Connection,
    conv: &ConversationRow,
    read: &ReadChunks,
) -> Result<ChunkPage, RowError> {
    let stream = find_stream(conn, conv, read.stream)?;
    let range = rules::chunk_range(&stream, read)?;
    let next = StreamCursor {
        epoch: stream.epoch,
        seq: range.end,
    };
    Ok(ChunkPage {
        chunks: load_chunks(conn, conv, &stream, range)?,
        next,
        stream,
    })
}

/// Deletes a stream, even if its record is damaged.
pub(crate) fn delete_stream(
    conn: &Connection,
    conv: &ConversationRow,
    stream: StreamId,
) -> Result<(), RowError> {
    match remove_streams_where(conn, conv, "stream = ?3", stream.as_bytes())? {
        0 => Err(Error::not_found(EntityKind::Stream, stream).into()),
        _ => Ok(()),
    }
}

/// Deletes all streams that have ended, even if their records are damaged.
pub(crate) fn remove_ended_streams(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<(), RowError> {
    remove_streams_where(conn, conv, "status <> ?3", &0).map(drop)
}

fn remove_stream(
    conn: &Connection,
    conv: &ConversationRow,
    stream: &StreamRecord,
) -> Result<(), RowError> {
    remove_streams_where(conn, conv, "id = ?3", &row_key(conv, stream)).map(drop)
}

/// Removes streams with their chunks; returns the number of streams.
fn remove_streams_where(
    conn: &Connection,
    conv: &ConversationRow,
    condition: &str,
    bound: &dyn ToSql,
) -> Result<usize, RowError> {
    let (first, last) = key_range(conv.no);
    // Chunks are deleted before streams, whose rows select them.
    let those = format!("FROM streams WHERE id BETWEEN ?1 AND ?2 AND {condition}");
    let bound = params![first, last, bound];
    conn.prepare_cached(&format!(
        "DELETE FROM stream_chunks WHERE conversation_no = ?1 >> 32 \
         AND epoch IN (SELECT id & 0xffffffff {those})"
    ))?
    .execute(bound)?;
    Ok(conn
        .prepare_cached(&format!("DELETE {those}"))?
        .execute(bound)?)
}

fn remove_chunks(
    conn: &Connection,
    conv: &ConversationRow,
    stream: &StreamRecord,
) -> Result<(), RowError> {
    conn.prepare_cached("DELETE FROM stream_chunks WHERE conversation_no = ? AND epoch = ?")?
        .execute([conv.no, epoch_no(stream.epoch)])?;
    Ok(())
}

/// Reads the streams between two keys, for a check.
pub(crate) const VERIFY: &str = "SELECT id, stream, status, cancel, first_chunk, next_chunk, bytes, \
     opened_ms, updated_ms, message FROM streams WHERE id > ? AND id <= ? ORDER BY id LIMIT ?";

/// Checks a stream of [`VERIFY`] and every chunk of it.
pub(crate) fn verify_stream(
    conn: &Connection,
    conv: &ConversationRow,
    row: &Row<'_>,
) -> Result<(), RowError> {
    let stream = decode_stream(conv, row)?;
    let damaged =
        |location: String, why: &str| RowError::from(conv.damaged_error("stream", location, why));
    let damaged_stream = |why| damaged(format!("epoch {}", stream.epoch), why);
    let next_epoch: u32 = conn
        .prepare_cached("SELECT next_epoch FROM conversations WHERE no = ?")?
        .query_row([conv.no], |row| row.get(0))?;
    // An epoch above the counter would be given to another stream later.
    if epoch_no(stream.epoch) >= next_epoch {
        return Err(damaged_stream("its epoch was never given"));
    }
    let mut statement = conn.prepare_cached(
        "SELECT seq, chunk_check, chunk FROM stream_chunks \
         WHERE conversation_no = ? AND epoch = ? ORDER BY seq",
    )?;
    let mut rows = statement.query([conv.no, epoch_no(stream.epoch)])?;
    let (mut next, mut bytes) = (stream.first, 0);
    while let Some(row) = rows.next()? {
        let seq = row.get::<_, i64>(0)?;
        let seq = u64::try_from(seq).unwrap_or(u64::MAX);
        let location = |seq: u64| format!("epoch {} chunk {seq}", stream.epoch);
        if seq != next {
            return Err(damaged(location(next.min(seq)), "missing, or one too many"));
        }
        let chunk = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        if row.get::<_, [u8; 8]>(1)? != chunk_checksum(&stream, seq, chunk) {
            return Err(damaged(location(seq), "its bytes do not match their check"));
        }
        next += 1;
        bytes += chunk.len() as u64;
    }
    if next != stream.next || bytes != stream.bytes {
        return Err(damaged_stream("its chunks are not those that are counted"));
    }
    Ok(())
}

/// Checks that there are no chunks without a stream.
pub(crate) fn check_stray_chunks(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<(), RowError> {
    let (first, last) = key_range(conv.no);
    let stray = conn
        .prepare_cached(
            "SELECT 1 FROM stream_chunks WHERE conversation_no = ?1 >> 32 AND epoch NOT IN \
             (SELECT id & 0xffffffff FROM streams WHERE id BETWEEN ?1 AND ?2)",
        )?
        .exists([first, last])?;
    if stray {
        let why = "there are chunks of no stream";
        return Err(conv.damaged_error("stream", "its chunks", why).into());
    }
    Ok(())
}

/// Reads the chunks with these numbers and checks their bytes.
fn load_chunks(
    conn: &Connection,
    conv: &ConversationRow,
    stream: &StreamRecord,
    seqs: Range<u64>,
) -> Result<Vec<Arc<[u8]>>, RowError> {
    let mut chunks = Vec::new();
    if seqs.is_empty() {
        return Ok(chunks);
    }
    let damaged = |seq: u64, why: &str| {
        let location = format!("epoch {} chunk {seq}", stream.epoch);
        RowError::from(conv.damaged_error("stream", location, why))
    };
    let bound = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(CHUNKS)?;
    let mut rows = statement.query(params![
        conv.no,
        epoch_no(stream.epoch),
        bound(seqs.start),
        bound(seqs.end)
    ])?;
    for seq in seqs {
        let row = rows.next()?.ok_or_else(|| damaged(seq, "missing"))?;
        let chunk = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        if row.get::<_, [u8; 8]>(0)? != chunk_checksum(stream, seq, chunk) {
            return Err(damaged(seq, "its bytes do not match their check"));
        }
        chunks.push(Arc::from(chunk));
    }
    Ok(chunks)
}

pub(crate) const CHUNKS: &str = "SELECT chunk_check, chunk FROM stream_chunks \
     WHERE conversation_no = ? AND epoch = ? AND seq >= ? AND seq < ? ORDER BY seq";

/// Computes the checksum of a chunk at its position.
fn chunk_checksum(stream: &StreamRecord, seq: u64, chunk: &[u8]) -> [u8; 8] {
    // The position is the seed of the hash, so intact bytes at a wrong position are detected too.
    let seed = stream.epoch.0.rotate_left(32) ^ seq;
    XxHash3_64::oneshot_with_seed(seed, chunk).to_le_bytes()
}
