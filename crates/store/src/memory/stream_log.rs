//! The streams of one conversation in memory. Not here: owners, and waking readers.

use std::ops::Range;
use std::sync::Arc;

use contexture_ir::StreamId;

use crate::contract::{
    AppendChunks, ChunkPage, EntityKind, Error, FinishStream, ReadChunks, StreamClaim,
    StreamCursor, StreamEpoch, StreamLimits, StreamOpened, StreamRecord,
};
use crate::rules;

/// Streams of one conversation, the most recently opened last.
#[derive(Debug, Default)]
pub(super) struct StreamLogs {
    logs: Vec<StreamLog>,
    /// Number of epochs given so far.
    epochs: u64,
}

/// A stream in memory: its record and its chunks.
#[derive(Debug)]
pub(super) struct StreamLog {
    record: StreamRecord,
    /// Stored chunks, the first of which has the number `record.first`.
    chunks: Vec<Arc<[u8]>>,
}

impl StreamLogs {
    pub(super) fn find_log(&mut self, id: StreamId) -> Result<&mut StreamLog, Error> {
        let found = self.logs.iter_mut().find(|log| log.record.id == id);
        found.ok_or_else(|| Error::not_found(EntityKind::Stream, id))
    }

    pub(super) fn open_stream(
        &mut self,
        id: StreamId,
        at_ms: i64,
        limits: &StreamLimits,
    ) -> Result<StreamOpened, Error> {
        let replaced = rules::plan_opening(self.list_streams(), id, limits)?;
        for gone in replaced.before.iter().chain(&replaced.surplus) {
            self.delete_stream(gone.id)?;
        }
        self.epochs += 1;
        let stream = StreamRecord::new(id, StreamEpoch(self.epochs), at_ms);
        self.logs.push(StreamLog {
            record: stream.clone(),
            chunks: Vec::new(),
        });
        Ok(StreamOpened {
            stream,
            before: replaced.before,
        })
    }

    pub(super) fn delete_stream(&mut self, id: StreamId) -> Result<StreamRecord, Error> {
        let at = self.logs.iter().position(|log| log.record.id == id);
        let at = at.ok_or_else(|| Error::not_found(EntityKind::Stream, id))?;
        Ok(self.logs.remove(at).record)
    }

    pub(super) fn list_streams(&self) -> Vec<StreamRecord> {
        self.logs.iter().map(|log| log.record.clone()).collect()
    }

    /// Checks that an append may end the stream: its claim must be current.
    pub(super) fn check_end(&mut self, claim: StreamClaim) -> Result<(), Error> {
        rules::check_claim(&self.find_log(claim.stream)?.record, claim)
    }

    /// Ends the stream as completed and drops its chunks, because the response is in the tree.
    pub(super) fn complete_stream(&mut self, claim: StreamClaim, at_ms: i64) {
        if let Ok(log) = self.find_log(claim.stream) {
            log.chunks.clear();
            rules::complete_record(&mut log.record, at_ms);
        }
    }

    pub(super) fn remove_ended_streams(&mut self) {
        self.logs.retain(|log| log.record.end.is_none());
    }
}

impl StreamLog {
    pub(super) fn append_chunks(
        &mut self,
        append: AppendChunks,
        limits: &StreamLimits,
    ) -> Result<StreamRecord, Error> {
        let known = self.stored_chunks(rules::stored_chunk_range(&self.record, &append));
        let known = rules::check_chunk_append(&self.record, &append, known, limits)?;
        for chunk in append.chunks.into_iter().skip(known) {
            self.record.next += 1;
            self.record.bytes += chunk.len() as u64;
            self.record.updated_ms = append.at_ms;
            self.chunks.push(chunk);
        }
        Ok(self.record.clone())
    }

    pub(super) fn finish_stream(&mut self, finish: &FinishStream) -> Result<StreamRecord, Error> {
        rules::finish_record(&mut self.record, finish)?;
        Ok(self.record.clone())
    }

    pub(super) fn cancel_stream(&mut self, at_ms: i64) -> StreamRecord {
        rules::cancel_record(&mut self.record, at_ms);
        self.record.clone()
    }

    pub(super) fn read_chunks(&self, read: &ReadChunks) -> Result<ChunkPage, Error> {
        let range = rules::chunk_range(&self.record, read)?;
        Ok(ChunkPage {
            next: StreamCursor {
                epoch: self.record.epoch,
                seq: range.end,
            },
            chunks: self.stored_chunks(range).to_vec(),
            stream: self.record.clone(),
        })
    }

    fn stored_chunks(&self, seqs: Range<u64>) -> &[Arc<[u8]>] {
        let index = |seq: u64| usize::try_from(seq.saturating_sub(self.record.first)).ok();
        let range = index(seqs.start).zip(index(seqs.end));
        let stored = range.and_then(|(from, to)| self.chunks.get(from..to));
        stored.unwrap_or_default()
    }
}
