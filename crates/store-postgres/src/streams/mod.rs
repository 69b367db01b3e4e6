//! Streams as rows: the records of running responses and their chunks.
//!
//! A write to a stream locks the stream's row, and the conversation's row only against deletion. So
//! concurrent responses wait neither for each other nor for appends to the tree. Opening a stream,
//! and whatever else concerns several streams, locks the conversation's row.
//!
//! Not here: waking readers.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner, StreamId};
use contexture_store::{
    AppendChunks, ChunkPage, EntityKind, Error, FinishStream, ReadChunks, StreamClaim,
    StreamCursor, StreamEpoch, StreamLimits, StreamOpened, StreamRecord, rules,
};
use futures_util::TryStreamExt as _;
use futures_util::future::{try_join, try_join3};
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::blob;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};

const LIST: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 ORDER BY epoch";

const ONE: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 AND stream = $2";

// Rows are locked in the order of epochs, so that two such calls cannot deadlock.
const HOLD_ALL: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 ORDER BY epoch FOR UPDATE";

const HOLD: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 AND stream = $2 FOR UPDATE";

const CHUNKS: &str = "SELECT seq, chunk_check, chunk FROM contexture.stream_chunks \
     WHERE conversation = $1 AND epoch = $2 AND seq >= $3 AND seq < $4 ORDER BY seq";

fn decode_stream(row: &Row) -> Result<StreamRecord, RowError> {
    let count = |column| -> Result<u64, RowError> {
        let count: i64 = get_column(row, column)?;
        u64::try_from(count).map_err(|_| corrupt_error(format!("a count is {count}")))
    };
    let epoch: i32 = get_column(row, 1)?;
    let message: Option<&[u8]> = get_column(row, 9)?;
    let message = message.map(|message| String::from_utf8_lossy(message).into_owned());
    let end = rules::stream_end_from_columns(get_column::<i16>(row, 2)?.into(), message);
    Ok(StreamRecord {
        id: StreamId::from_bytes(get_bytes(row, 0)?),
        epoch: StreamEpoch(u64::try_from(epoch).unwrap_or(0)),
        end: end.map_err(|status| corrupt_error(format!("a stream's status is {status}")))?,
        cancel_requested: get_column(row, 3)?,
        first: count(4)?,
        next: count(5)?,
        bytes: count(6)?,
        opened_ms: get_column(row, 7)?,
        updated_ms: get_column(row, 8)?,
    })
}

/// Inserts or updates the row of a stream.
fn save_stream(tx: &mut Tx<'_>, key: [u8; 16], stream: &StreamRecord) {
    let (status, message) = rules::stream_end_columns(stream.end.as_ref());
    tx.execute_on_commit(
        "INSERT INTO contexture.streams (conversation, stream, epoch, status, cancel, \
         first_chunk, next_chunk, size, opened_ms, updated_ms, message) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (conversation, stream) DO UPDATE SET epoch = $3, status = $4, cancel = $5, \
         first_chunk = $6, next_chunk = $7, size = $8, opened_ms = $9, updated_ms = $10, \
         message = $11",
        params![
            key,
            stream.id,
            epoch_no(stream.epoch),
            i16::from(status),
            stream.cancel_requested,
            to_i64(stream.first),
            to_i64(stream.next),
            to_i64(stream.bytes),
            stream.opened_ms,
            stream.updated_ms,
            message.map(|message| Bytea::Text(message.into()))
        ],
    );
}

fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts an epoch; stored ones are below 2^31.
fn epoch_no(epoch: StreamEpoch) -> i32 {
    i32::try_from(epoch.0).unwrap_or(i32::MAX)
}

fn require_stream(row: Option<Row>, stream: StreamId) -> Result<StreamRecord, RowError> {
    let row = row.ok_or_else(|| Error::not_found(EntityKind::Stream, stream))?;
    decode_stream(&row)
}

/// Locks the conversation against deletion until the end of the transaction.
async fn lock_conversation_shared(
    tx: &Tx<'_>,
    id: &ConversationId,
    key: [u8; 16],
) -> Result<(), RowError> {
    // FOR KEY SHARE prevents a deletion and does not wait for appends, which do not update the key.
    let row = tx.query_row(
        "SELECT FROM contexture.conversations WHERE conversation = $1 FOR KEY SHARE",
        params![key],
    );
    let none = || Error::not_found(EntityKind::Conversation, id);
    row.await?.map(drop).ok_or_else(|| none().into())
}

/// Locks and reads a stream: other writes to it wait until the end of this transaction.
async fn lock_stream(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
) -> Result<([u8; 16], StreamRecord), RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    let row = tx.query_row(HOLD, params![key, stream]);
    // Both locks are requested in one round trip.
    let ((), row) = try_join(lock_conversation_shared(tx, id, key), row).await?;
    Ok((key, require_stream(row, stream)?))
}

/// Lists the streams of a conversation, the most recently opened last.
pub(crate) async fn list_streams(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Vec<StreamRecord>, RowError> {
    let rows = tx.query_rows(LIST, params![ConversationKey::of(owner, id).into_bytes()]);
    let (_, rows) = try_join(ConversationRow::load_for_read(tx, owner, id), rows).await?;
    rows.iter().map(decode_stream).collect()
}

/// Opens a stream with a new epoch.
pub(crate) async fn open_stream(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
    at_ms: i64,
    limits: &StreamLimits,
) -> Result<StreamOpened, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    // Epochs are counted in the conversation's row: a stream that is deleted and opened again never
    // reuses one, or cursors of old readers would match its new chunks.
    let epoch = tx.query_row(
        "UPDATE contexture.conversations SET next_epoch = next_epoch + 1 \
         WHERE conversation = $1 RETURNING next_epoch - 1",
        params![key],
    );
    let rows = tx.query_rows(HOLD_ALL, params![key]);
    let (_, epoch, rows) =
        try_join3(ConversationRow::load_for_update(tx, owner, id), epoch, rows).await?;
    let epoch: i32 = match &epoch {
        Some(row) => get_column(row, 0)?,
        None => return Err(Error::not_found(EntityKind::Conversation, id).into()),
    };
    let all = rows
        .iter()
        .map(decode_stream)
        .collect::<Result<Vec<_>, RowError>>()?;
    let replaced = rules::plan_opening(all, stream, limits)?;
    for gone in &replaced.surplus {
        remove_stream(tx, key, gone);
    }
    // The chunks of the old epoch are removed; the row is overwritten below.
    if let Some(before) = &replaced.before {
        remove_chunks(tx, key, before.epoch);
    }
    let epoch = StreamEpoch(u64::try_from(epoch).unwrap_or(0));
    let stream = StreamRecord::new(stream, epoch, at_ms);
    save_stream(tx, key, &stream);
    Ok(StreamOpened {
        stream,
        before: replaced.before,
    })
}

/// Appends chunks; `append` is within the limits of one call already.
pub(crate) async fn append_chunks(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    append: &AppendChunks,
    limits: &StreamLimits,
) -> Result<StreamRecord, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    let end = append.seq.saturating_add(append.chunks.len() as u64);
    let stored = tx.query_rows(
        CHUNKS,
        params![
            key,
            epoch_no(append.claim.epoch),
            to_i64(append.seq),
            to_i64(end)
        ],
    );
    let locked = lock_stream(tx, owner, id, append.claim.stream);
    let ((_, mut stream), rows) = try_join(locked, stored).await?;
    rules::check_claim(&stream, append.claim)?;
    let range = rules::stored_chunk_range(&stream, append);
    let stored = decode_chunks(id, stream.epoch, range, &rows)?;
    let stored = rules::check_chunk_append(&stream, append, &stored, limits)?;
    let new = append.chunks.get(stored..).unwrap_or_default();
    if new.is_empty() {
        return Ok(stream);
    }
    insert_chunks(tx, key, &mut stream, new);
    stream.updated_ms = append.at_ms;
    save_stream(tx, key, &stream);
    Ok(stream)
}

/// Inserts chunks at the end of a stream and counts them in its record, which the caller must save.
fn insert_chunks(tx: &mut Tx<'_>, key: [u8; 16], stream: &mut StreamRecord, new: &[Arc<[u8]>]) {
    let (mut seqs, mut checks) = (Vec::new(), Vec::new());
    for chunk in new {
        seqs.push(to_i64(stream.next));
        checks.push(chunk_checksum(stream.next, chunk));
        stream.next += 1;
        stream.bytes += chunk.len() as u64;
    }
    tx.execute_on_commit(
        "INSERT INTO contexture.stream_chunks (conversation, epoch, seq, chunk_check, chunk) \
         SELECT $1, $2, new.* FROM unnest($3, $4, $5) AS new",
        params![key, epoch_no(stream.epoch), seqs, checks, new.to_vec()],
    );
}

/// Ends a stream.
pub(crate) async fn finish_stream(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    finish: &FinishStream,
) -> Result<StreamRecord, RowError> {
    let (key, mut stream) = lock_stream(tx, owner, id, finish.claim.stream).await?;
    if rules::finish_record(&mut stream, finish)? {
        save_stream(tx, key, &stream);
    }
    Ok(stream)
}

/// Asks the stream's writer to stop.
pub(crate) async fn cancel_stream(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
    at_ms: i64,
) -> Result<StreamRecord, RowError> {
    let (key, mut stream) = lock_stream(tx, owner, id, stream).await?;
    if rules::cancel_record(&mut stream, at_ms) {
        save_stream(tx, key, &stream);
    }
    Ok(stream)
}

/// Completes a stream whose response is in the tree, and removes its chunks; the conversation is
/// locked.
pub(crate) async fn complete_stream(
    tx: &mut Tx<'_>,
    conv: &ConversationRow,
    claim: StreamClaim,
    at_ms: i64,
) -> Result<(), RowError> {
    let row = tx.query_row(HOLD, params![conv.key, claim.stream]).await?;
    let mut stream = require_stream(row, claim.stream)?;
    rules::check_claim(&stream, claim)?;
    remove_chunks(tx, conv.key, stream.epoch);
    rules::complete_record(&mut stream, at_ms);
    save_stream(tx, conv.key, &stream);
    Ok(())
}

/// Reads chunks from a cursor on.
pub(crate) async fn read_chunks(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    read: &ReadChunks,
) -> Result<ChunkPage, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    let row = tx.query_row(ONE, params![key, read.stream]);
    let (_, row) = try_join(ConversationRow::load_for_read(tx, owner, id), row).await?;
    let stream = require_stream(row, read.stream)?;
    let range = rules::chunk_range(&stream, read)?;
    let next = StreamCursor {
        epoch: stream.epoch,
        seq: range.end,
    };
    let chunks = if range.is_empty() {
        Vec::new()
    } else {
        let (from, to) = (to_i64(range.start), to_i64(range.end));
        let rows = tx.query_rows(CHUNKS, params![key, epoch_no(stream.epoch), from, to]);
        decode_chunks(id, stream.epoch, range, &rows.await?)?
    };
    Ok(ChunkPage {
        chunks,
        next,
        stream,
    })
}

/// Deletes a stream.
pub(crate) async fn delete_stream(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
) -> Result<(), RowError> {
    // Locked like any write, so that no chunk can be appended during the deletion.
    let (key, stream) = lock_stream(tx, owner, id, stream).await?;
    remove_stream(tx, key, &stream);
    Ok(())
}

/// Deletes all streams that have ended; the conversation is locked.
pub(crate) async fn remove_ended_streams(
    tx: &mut Tx<'_>,
    conv: &ConversationRow,
) -> Result<(), RowError> {
    for row in tx.query_rows(HOLD_ALL, params![conv.key]).await? {
        let stream = decode_stream(&row)?;
        if stream.end.is_some() {
            remove_stream(tx, conv.key, &stream);
        }
    }
    Ok(())
}

fn remove_stream(tx: &mut Tx<'_>, key: [u8; 16], stream: &StreamRecord) {
    remove_chunks(tx, key, stream.epoch);
    tx.execute_on_commit(
        "DELETE FROM contexture.streams WHERE conversation = $1 AND stream = $2",
        params![key, stream.id],
    );
}

fn remove_chunks(tx: &mut Tx<'_>, key: [u8; 16], epoch: StreamEpoch) {
    tx.execute_on_commit(
        "DELETE FROM contexture.stream_chunks WHERE conversation = $1 AND epoch = $2",
        params![key, epoch_no(epoch)],
    );
}

/// Reads the streams after an epoch, each with the conversation's next epoch.
pub(crate) const VERIFY: &str = "SELECT s.stream, s.epoch, s.status, s.cancel, s.first_chunk, \
     s.next_chunk, s.size, s.opened_ms, s.updated_ms, s.message, c.next_epoch \
     FROM contexture.streams s JOIN contexture.conversations c \
     ON c.conversation = s.conversation \
     WHERE s.conversation = $1 AND s.epoch > $2 ORDER BY s.epoch LIMIT $3";

/// Epochs that have chunks but no stream.
pub(crate) const STRAYS: &str = "SELECT DISTINCT k.epoch FROM contexture.stream_chunks k \
     WHERE k.conversation = $1 AND NOT EXISTS (SELECT FROM contexture.streams s \
     WHERE s.conversation = k.conversation AND s.epoch = k.epoch) ORDER BY k.epoch";

/// Checks a stream of [`VERIFY`] and every chunk of it.
pub(crate) async fn verify_stream(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    row: &Row,
) -> Result<(), RowError> {
    let stream = decode_stream(row)?;
    let epoch = stream.epoch;
    let damaged =
        |location: String, why: &str| RowError::from(conv.damaged_error("stream", location, why));
    let damaged_stream = |why| damaged(format!("epoch {epoch}"), why);
    // Column 10 is the conversation's next epoch. An epoch that is not below it would be given out
    // again.
    if epoch_no(epoch) >= get_column(row, 10)? {
        return Err(damaged_stream("its epoch was never given"));
    }
    let params = params![conv.key, epoch_no(epoch), 0_i64, i64::MAX];
    let mut rows = std::pin::pin!(tx.query_stream(CHUNKS, params).await?);
    // The chunks of the epoch must be exactly those that the record counts.
    let (mut next, mut size) = (stream.first, 0);
    while let Some(row) = rows.try_next().await? {
        let seq = u64::try_from(get_column::<i64>(&row, 0)?).unwrap_or(u64::MAX);
        let chunk: &[u8] = get_column(&row, 2)?;
        let location = |seq: u64| format!("epoch {epoch} chunk {seq}");
        if seq != next {
            return Err(damaged(location(next.min(seq)), "missing, or one too many"));
        }
        if get_bytes(&row, 1)? != chunk_checksum(seq, chunk) {
            return Err(damaged(location(seq), "its bytes do not match their check"));
        }
        next += 1;
        size += chunk.len() as u64;
    }
    match next == stream.next && size == stream.bytes {
        true => Ok(()),
        false => Err(damaged_stream("its chunks are not those that are counted")),
    }
}

/// Decodes the chunks with these numbers and checks their bytes.
fn decode_chunks(
    id: &ConversationId,
    epoch: StreamEpoch,
    seqs: std::ops::Range<u64>,
    rows: &[Row],
) -> Result<Vec<Arc<[u8]>>, RowError> {
    let damaged = |seq: u64, why: &str| {
        let position = format!("epoch {epoch} chunk {seq}");
        Error::damaged(id, "stream", position, why)
    };
    let mut chunks = Vec::new();
    let mut rows = rows.iter();
    for seq in seqs {
        let row = rows.next().ok_or_else(|| damaged(seq, "missing"))?;
        let chunk: &[u8] = get_column(row, 2)?;
        if get_column::<i64>(row, 0)? != to_i64(seq)
            || get_bytes(row, 1)? != chunk_checksum(seq, chunk)
        {
            return Err(damaged(seq, "its bytes do not match their check").into());
        }
        chunks.push(Arc::from(chunk));
    }
    Ok(chunks)
}

/// Computes the checksum of a chunk with its number, so that chunks cannot be swapped within a
/// stream.
fn chunk_checksum(seq: u64, chunk: &[u8]) -> [u8; 8] {
    blob::row_checksum(&[&seq.to_le_bytes(), chunk].concat())
}
