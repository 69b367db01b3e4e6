//! Decides from the record of a stream which operations are allowed.
//!
//! Not here: looking up streams.

use std::ops::Range;
use std::sync::Arc;

use contexture_ir::StreamId;

use super::check::check_limit;
use crate::contract::{
    AppendChunks, ChunkConflict, Error, FinishStream, ReadChunks, StreamClaim, StreamEnd,
    StreamLimits, StreamRecord,
};

/// Checks that chunks are within the limits; returns their size in bytes.
pub fn check_chunks(append: &AppendChunks, limits: &StreamLimits) -> Result<usize, Error> {
    if append.chunks.is_empty() {
        return Err(Error::invalid_argument("chunks", "none"));
    }
    check_limit(
        "stream_append_chunks",
        limits.append_chunks,
        append.chunks.len(),
    )?;
    let mut bytes = 0;
    for chunk in &append.chunks {
        check_limit("stream_chunk_bytes", limits.chunk_bytes, chunk.len())?;
        bytes += chunk.len();
    }
    check_limit("stream_bytes", limits.bytes, bytes)?;
    Ok(bytes)
}

/// Checks that an end is within the limits.
pub fn check_finish(finish: &FinishStream, limits: &StreamLimits) -> Result<(), Error> {
    let message = match &finish.end {
        StreamEnd::Failed { message } => message.len(),
        StreamEnd::Completed | StreamEnd::Cancelled => 0,
    };
    check_limit("stream_message_bytes", limits.message_bytes, message)
}

/// Streams that are removed when a stream is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReplacement {
    /// Earlier epoch of the same stream, which the new one replaces.
    pub before: Option<StreamRecord>,
    /// Ended streams beyond [`StreamLimits::ended`], the earliest-opened first.
    pub surplus: Vec<StreamRecord>,
}

/// Decides which streams to remove when `stream` is opened. `stored` holds all streams of the
/// conversation, by epoch.
///
/// # Errors
///
/// [`Error::Limit`] if too many other streams are running.
pub fn plan_opening(
    stored: Vec<StreamRecord>,
    stream: StreamId,
    limits: &StreamLimits,
) -> Result<StreamReplacement, Error> {
    let (same, others): (Vec<_>, Vec<_>) = stored.into_iter().partition(|one| one.id == stream);
    let (mut ended, running): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|one| one.end.is_some());
    // The stream itself does not count: its earlier epoch is replaced.
    check_limit(
        "streams_running",
        limits.running,
        running.len().saturating_add(1),
    )?;
    ended.truncate(ended.len().saturating_sub(limits.ended));
    Ok(StreamReplacement {
        before: same.into_iter().next(),
        surplus: ended,
    })
}

/// Checks that the claim is the newest.
pub fn check_claim(record: &StreamRecord, claim: StreamClaim) -> Result<(), Error> {
    if record.epoch == claim.epoch {
        return Ok(());
    }
    Err(Error::StaleEpoch {
        stream: record.id,
        held: claim.epoch,
        current: record.epoch,
    })
}

/// Returns the numbers of an append's chunks that are already stored; [`check_chunk_append`] needs
/// their bytes.
#[must_use]
pub fn stored_chunk_range(record: &StreamRecord, append: &AppendChunks) -> Range<u64> {
    let end = append.seq.saturating_add(append.chunks.len() as u64);
    let first = append.seq.max(record.first);
    first..end.min(record.next).max(first)
}

/// Returns how many chunks of an append, from its front, are already stored. `known` holds the
/// bytes stored under [`stored_chunk_range`]. The caller has checked the limits of the append.
pub fn check_chunk_append(
    record: &StreamRecord,
    append: &AppendChunks,
    known: &[Arc<[u8]>],
    limits: &StreamLimits,
) -> Result<usize, Error> {
    check_claim(record, append.claim)?;
    let conflict = |seq, why| {
        Err(Error::ChunkConflict {
            stream: record.id,
            seq,
            why,
        })
    };
    if append.seq > record.next {
        return conflict(append.seq, ChunkConflict::Gap { next: record.next });
    }
    let whole = append.seq >= record.first;
    if let Some(end) = &record.end
        && (!whole || known.len() < append.chunks.len())
    {
        return Err(stream_ended_error(record, end));
    }
    for (seq, (chunk, stored)) in (append.seq..).zip(append.chunks.iter().zip(known)) {
        if chunk != stored {
            return conflict(seq, ChunkConflict::OtherBytes);
        }
    }
    let new = append.chunks.iter().skip(known.len());
    let bytes: usize = new.map(|chunk| chunk.len()).sum();
    let held = usize::try_from(record.bytes).unwrap_or(usize::MAX);
    check_limit("stream_bytes", limits.bytes, held.saturating_add(bytes))?;
    Ok(known.len())
}

/// Ends a stream in its record; returns whether that changed the record. The same end again changes
/// nothing, so the time of the first one stays.
pub fn finish_record(record: &mut StreamRecord, finish: &FinishStream) -> Result<bool, Error> {
    check_claim(record, finish.claim)?;
    match &record.end {
        None => {
            record.end = Some(finish.end.clone());
            record.updated_ms = finish.at_ms;
            Ok(true)
        }
        Some(end) if *end == finish.end => Ok(false),
        Some(end) => Err(stream_ended_error(record, end)),
    }
}

/// Asks a stream's writer to stop; returns whether that changed the record.
pub fn cancel_record(record: &mut StreamRecord, at_ms: i64) -> bool {
    let changes = record.end.is_none() && !record.cancel_requested;
    if changes {
        record.cancel_requested = true;
        record.updated_ms = at_ms;
    }
    changes
}

/// Completes a stream whose response was stored in the tree, and clears its chunks in the record.
pub fn complete_record(record: &mut StreamRecord, at_ms: i64) {
    // `first` moves to the end: a reader that lags behind gets [`Error::ChunksGone`] and reads the
    // node.
    record.first = record.next;
    record.bytes = 0;
    record.end.get_or_insert(StreamEnd::Completed);
    record.updated_ms = at_ms;
}

/// Returns the numbers of the chunks that a read returns.
pub fn chunk_range(record: &StreamRecord, read: &ReadChunks) -> Result<Range<u64>, Error> {
    let from = match read.from {
        None => record.first,
        Some(cursor) if cursor.epoch != record.epoch => {
            return Err(Error::EpochChanged {
                stream: record.id,
                asked: cursor.epoch,
                current: record.epoch,
            });
        }
        Some(cursor) => cursor.seq,
    };
    if from > record.next {
        return Err(Error::invalid_argument(
            "cursor",
            format!("chunk {from} of a stream of {}", record.next),
        ));
    }
    if from < record.first {
        return Err(Error::ChunksGone {
            stream: record.id,
            seq: from,
            first: record.first,
        });
    }
    let end = from.saturating_add(read.limit as u64).min(record.next);
    Ok(from..end)
}

fn stream_ended_error(record: &StreamRecord, end: &StreamEnd) -> Error {
    Error::StreamEnded {
        stream: record.id,
        end: end.clone(),
    }
}
