//! Streams as rows.
//!
//! A write to a stream holds the stream's row, and the conversation's only against its deletion: so
//! answers that run side by side do not wait for each other, nor for what is appended to the tree.
//! Opening and whatever else concerns several streams holds the conversation's row.
//!
//! Not here: who is woken.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner, StreamId};
use contexture_store::{
    AppendChunks, ChunkPage, Error, FinishStream, ReadChunks, StreamClaim, StreamCursor, StreamEnd,
    StreamEpoch, StreamLimits, StreamOpened, StreamRecord, Thing, rules,
};
use futures_util::TryStreamExt as _;
use futures_util::future::{try_join, try_join3};
use tokio_postgres::Row;

use crate::blob;
use crate::conv::{Conv, Key};
use crate::fault::{Fault, corrupt};
use crate::param::{Bytea, params};
use crate::row::{bytes, get};
use crate::tx::Tx;

const LIST: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 ORDER BY epoch";

const ONE: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 AND stream = $2";

const HOLD_ALL: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 ORDER BY epoch FOR UPDATE";

const HOLD: &str = "SELECT stream, epoch, status, cancel, first_chunk, next_chunk, size, \
     opened_ms, updated_ms, message FROM contexture.streams \
     WHERE conversation = $1 AND stream = $2 FOR UPDATE";

const CHUNKS: &str = "SELECT seq, chunk_check, chunk FROM contexture.stream_chunks \
     WHERE conversation = $1 AND epoch = $2 AND seq >= $3 AND seq < $4 ORDER BY seq";

fn record(row: &Row) -> Result<StreamRecord, Fault> {
    let count = |column| -> Result<u64, Fault> {
        let count: i64 = get(row, column)?;
        u64::try_from(count).map_err(|_| corrupt(format!("a count is {count}")))
    };
    let epoch: i32 = get(row, 1)?;
    let message: Option<&[u8]> = get(row, 9)?;
    Ok(StreamRecord {
        id: StreamId::from_bytes(bytes(row, 0)?),
        epoch: StreamEpoch(u64::try_from(epoch).unwrap_or(0)),
        end: match get::<i16>(row, 2)? {
            0 => None,
            1 => Some(StreamEnd::Completed),
            2 => Some(StreamEnd::Failed {
                message: String::from_utf8_lossy(message.unwrap_or_default()).into_owned(),
            }),
            3 => Some(StreamEnd::Cancelled),
            other => return Err(corrupt(format!("a stream's status is {other}"))),
        },
        cancel_requested: get(row, 3)?,
        first: count(4)?,
        next: count(5)?,
        bytes: count(6)?,
        opened_ms: get(row, 7)?,
        updated_ms: get(row, 8)?,
    })
}

/// Writes the row of a stream that is there or not.
fn save(tx: &mut Tx<'_>, key: [u8; 16], stream: &StreamRecord) {
    let (status, message) = match &stream.end {
        None => (0_i16, None),
        Some(StreamEnd::Completed) => (1, None),
        Some(StreamEnd::Failed { message }) => (2, Some(message)),
        Some(StreamEnd::Cancelled) => (3, None),
    };
    tx.later(
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
            status,
            stream.cancel_requested,
            number(stream.first),
            number(stream.next),
            number(stream.bytes),
            stream.opened_ms,
            stream.updated_ms,
            message.map(|message| Bytea::Own(message.clone().into_bytes()))
        ],
    );
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Stored epochs are below 2^31.
fn epoch_no(epoch: StreamEpoch) -> i32 {
    i32::try_from(epoch.0).unwrap_or(i32::MAX)
}

fn there(row: Option<Row>, stream: StreamId) -> Result<StreamRecord, Fault> {
    let row = row.ok_or_else(|| Error::not_found(Thing::Stream, stream))?;
    record(&row)
}

/// The conversation goes on to exist until the end of the transaction.
async fn keep(tx: &Tx<'_>, id: &ConversationId, key: [u8; 16]) -> Result<(), Fault> {
    let kept = tx.row(
        "SELECT FROM contexture.conversations WHERE conversation = $1 FOR KEY SHARE",
        params![key],
    );
    let none = || Error::not_found(Thing::Conversation, id);
    kept.await?.map(drop).ok_or_else(|| none().into())
}

/// The stream, for writing: other writes to it wait until the end of this transaction.
async fn hold(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
) -> Result<([u8; 16], StreamRecord), Fault> {
    let key = Key::of(owner, id).bytes();
    let row = tx.row(HOLD, params![key, stream]);
    let ((), row) = try_join(keep(tx, id, key), row).await?;
    Ok((key, there(row, stream)?))
}

/// The streams of a conversation, the latest opened last.
pub(crate) async fn list(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Vec<StreamRecord>, Fault> {
    let rows = tx.rows(LIST, params![Key::of(owner, id).bytes()]);
    let (_, rows) = try_join(Conv::see(tx, owner, id), rows).await?;
    rows.iter().map(record).collect()
}

/// Opens a stream with a new epoch.
pub(crate) async fn open(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
    at_ms: i64,
    limits: &StreamLimits,
) -> Result<StreamOpened, Fault> {
    let key = Key::of(owner, id).bytes();
    let epoch = tx.row(
        "UPDATE contexture.conversations SET next_epoch = next_epoch + 1 \
         WHERE conversation = $1 RETURNING next_epoch - 1",
        params![key],
    );
    let rows = tx.rows(HOLD_ALL, params![key]);
    let (_, epoch, rows) = try_join3(Conv::lock(tx, owner, id), epoch, rows).await?;
    let epoch: i32 = match &epoch {
        Some(row) => get(row, 0)?,
        None => return Err(Error::not_found(Thing::Conversation, id).into()),
    };
    let all = rows.iter().map(record).collect::<Result<Vec<_>, Fault>>()?;
    let (same, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.id == stream);
    let (ended, running): (Vec<_>, Vec<_>) = others.iter().partition(|one| one.end.is_some());
    rules::check_running(running.len(), limits)?;
    let surplus = ended.len().saturating_sub(limits.ended);
    for gone in ended.into_iter().take(surplus) {
        remove(tx, key, gone);
    }
    for old in &same {
        remove_chunks(tx, key, old.epoch);
    }
    let epoch = StreamEpoch(u64::try_from(epoch).unwrap_or(0));
    let stream = StreamRecord::new(stream, epoch, at_ms);
    save(tx, key, &stream);
    let before = same.into_iter().next();
    Ok(StreamOpened { stream, before })
}

/// Appends chunks; `append` is within the limits of one call already.
pub(crate) async fn append(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    append: &AppendChunks,
    limits: &StreamLimits,
) -> Result<StreamRecord, Fault> {
    let key = Key::of(owner, id).bytes();
    let end = append.seq.saturating_add(append.chunks.len() as u64);
    let known = tx.rows(
        CHUNKS,
        params![
            key,
            epoch_no(append.claim.epoch),
            number(append.seq),
            number(end)
        ],
    );
    let held = hold(tx, owner, id, append.claim.stream);
    let ((_, mut stream), rows) = try_join(held, known).await?;
    rules::check_claim(&stream, append.claim)?;
    let range = rules::known_chunks(&stream, append);
    let known = chunks(id, stream.epoch, range, &rows)?;
    let known = rules::land_chunks(&stream, append, &known, limits)?;
    let new = append.chunks.get(known..).unwrap_or_default();
    if new.is_empty() {
        return Ok(stream);
    }
    let (mut seqs, mut checks) = (Vec::new(), Vec::new());
    for chunk in new {
        seqs.push(number(stream.next));
        checks.push(check(stream.next, chunk));
        stream.next += 1;
        stream.bytes += chunk.len() as u64;
    }
    stream.updated_ms = append.at_ms;
    tx.later(
        "INSERT INTO contexture.stream_chunks (conversation, epoch, seq, chunk_check, chunk) \
         SELECT $1, $2, new.* FROM unnest($3, $4, $5) AS new",
        params![key, epoch_no(stream.epoch), seqs, checks, new.to_vec()],
    );
    save(tx, key, &stream);
    Ok(stream)
}

/// Ends a stream.
pub(crate) async fn finish(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    finish: &FinishStream,
) -> Result<StreamRecord, Fault> {
    let (key, mut stream) = hold(tx, owner, id, finish.claim.stream).await?;
    if rules::end_stream(&stream, finish)? {
        stream.end = Some(finish.end.clone());
        stream.updated_ms = finish.at_ms;
        save(tx, key, &stream);
    }
    Ok(stream)
}

/// Asks the writer to stop.
pub(crate) async fn cancel(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
    at_ms: i64,
) -> Result<StreamRecord, Fault> {
    let (key, mut stream) = hold(tx, owner, id, stream).await?;
    if stream.end.is_none() && !stream.cancel_requested {
        stream.cancel_requested = true;
        stream.updated_ms = at_ms;
        save(tx, key, &stream);
    }
    Ok(stream)
}

/// The answer is in the tree: its chunks go. The conversation is locked.
pub(crate) async fn end(
    tx: &mut Tx<'_>,
    conv: &Conv,
    claim: StreamClaim,
    at_ms: i64,
) -> Result<(), Fault> {
    let row = tx.row(HOLD, params![conv.key, claim.stream]).await?;
    let mut stream = there(row, claim.stream)?;
    rules::check_claim(&stream, claim)?;
    remove_chunks(tx, conv.key, stream.epoch);
    stream.first = stream.next;
    stream.bytes = 0;
    stream.end.get_or_insert(StreamEnd::Completed);
    stream.updated_ms = at_ms;
    save(tx, conv.key, &stream);
    Ok(())
}

/// Chunks from a place on.
pub(crate) async fn read(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    read: &ReadChunks,
) -> Result<ChunkPage, Fault> {
    let key = Key::of(owner, id).bytes();
    let row = tx.row(ONE, params![key, read.stream]);
    let (_, row) = try_join(Conv::see(tx, owner, id), row).await?;
    let stream = there(row, read.stream)?;
    let range = rules::chunk_range(&stream, read)?;
    let next = StreamCursor {
        epoch: stream.epoch,
        seq: range.end,
    };
    let chunks = if range.is_empty() {
        Vec::new()
    } else {
        let (from, to) = (number(range.start), number(range.end));
        let rows = tx.rows(CHUNKS, params![key, epoch_no(stream.epoch), from, to]);
        chunks(id, stream.epoch, range, &rows.await?)?
    };
    Ok(ChunkPage {
        chunks,
        next,
        stream,
    })
}

/// Deletes a stream.
pub(crate) async fn delete(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    stream: StreamId,
) -> Result<(), Fault> {
    let (key, stream) = hold(tx, owner, id, stream).await?;
    remove(tx, key, &stream);
    Ok(())
}

/// Deletes all that have ended. The conversation is locked.
pub(crate) async fn remove_ended(tx: &mut Tx<'_>, conv: &Conv) -> Result<(), Fault> {
    for row in tx.rows(HOLD_ALL, params![conv.key]).await? {
        let stream = record(&row)?;
        if stream.end.is_some() {
            remove(tx, conv.key, &stream);
        }
    }
    Ok(())
}

fn remove(tx: &mut Tx<'_>, key: [u8; 16], stream: &StreamRecord) {
    remove_chunks(tx, key, stream.epoch);
    tx.later(
        "DELETE FROM contexture.streams WHERE conversation = $1 AND stream = $2",
        params![key, stream.id],
    );
}

fn remove_chunks(tx: &mut Tx<'_>, key: [u8; 16], epoch: StreamEpoch) {
    tx.later(
        "DELETE FROM contexture.stream_chunks WHERE conversation = $1 AND epoch = $2",
        params![key, epoch_no(epoch)],
    );
}

/// Streams behind an epoch, each with the next epoch that is given.
pub(crate) const VERIFY: &str = "SELECT s.stream, s.epoch, s.status, s.cancel, s.first_chunk, \
     s.next_chunk, s.size, s.opened_ms, s.updated_ms, s.message, c.next_epoch \
     FROM contexture.streams s JOIN contexture.conversations c \
     ON c.conversation = s.conversation \
     WHERE s.conversation = $1 AND s.epoch > $2 ORDER BY s.epoch LIMIT $3";

/// Epochs that have chunks and no stream.
pub(crate) const STRAYS: &str = "SELECT DISTINCT k.epoch FROM contexture.stream_chunks k \
     WHERE k.conversation = $1 AND NOT EXISTS (SELECT FROM contexture.streams s \
     WHERE s.conversation = k.conversation AND s.epoch = k.epoch) ORDER BY k.epoch";

/// Checks a stream of [`VERIFY`] and every chunk of it.
pub(crate) async fn verify(tx: &Tx<'_>, conv: &Conv, row: &Row) -> Result<(), Fault> {
    let stream = record(row)?;
    let epoch = stream.epoch;
    let damaged = |place: String, why: &str| Fault::from(conv.damaged("stream", place, why));
    let whole = |why| damaged(format!("epoch {epoch}"), why);
    if epoch_no(epoch) >= get(row, 10)? {
        return Err(whole("its epoch was never given"));
    }
    let asked = params![conv.key, epoch_no(epoch), 0_i64, i64::MAX];
    let mut rows = std::pin::pin!(tx.stream(CHUNKS, asked).await?);
    let (mut next, mut size) = (stream.first, 0);
    while let Some(row) = rows.try_next().await? {
        let seq = u64::try_from(get::<i64>(&row, 0)?).unwrap_or(u64::MAX);
        let chunk: &[u8] = get(&row, 2)?;
        let place = |seq: u64| format!("epoch {epoch} chunk {seq}");
        if seq != next {
            return Err(damaged(place(next.min(seq)), "missing, or one too many"));
        }
        if bytes(&row, 1)? != check(seq, chunk) {
            return Err(damaged(place(seq), "its bytes do not match their check"));
        }
        next += 1;
        size += chunk.len() as u64;
    }
    match next == stream.next && size == stream.bytes {
        true => Ok(()),
        false => Err(whole("its chunks are not those that are counted")),
    }
}

/// The chunks of these numbers, if they are what was stored.
fn chunks(
    id: &ConversationId,
    epoch: StreamEpoch,
    seqs: std::ops::Range<u64>,
    rows: &[Row],
) -> Result<Vec<Arc<[u8]>>, Fault> {
    let damaged = |seq: u64, why: &str| Error::Damaged {
        conversation: id.clone(),
        what: "stream",
        position: format!("epoch {epoch} chunk {seq}"),
        why: why.to_owned(),
    };
    let mut chunks = Vec::new();
    let mut rows = rows.iter();
    for seq in seqs {
        let row = rows.next().ok_or_else(|| damaged(seq, "missing"))?;
        let chunk: &[u8] = get(row, 2)?;
        if get::<i64>(row, 0)? != number(seq) || bytes(row, 1)? != check(seq, chunk) {
            return Err(damaged(seq, "its bytes do not match their check").into());
        }
        chunks.push(Arc::from(chunk));
    }
    Ok(chunks)
}

/// Tells damage: another chunk's bytes do not pass in this one's place.
fn check(seq: u64, chunk: &[u8]) -> [u8; 8] {
    blob::check(&[&seq.to_le_bytes(), chunk].concat())
}
