//! The streams of one conversation in memory. Not here: whose they are, and who is woken.

use std::ops::Range;
use std::sync::Arc;

use contexture_ir::StreamId;

use crate::error::{Error, Thing};
use crate::rules;
use crate::stream::{
    AppendChunks, ChunkPage, FinishStream, ReadChunks, StreamLimits, StreamOpened, StreamRecord,
};
use crate::stream_cursor::{StreamClaim, StreamCursor, StreamEnd, StreamEpoch};

/// The streams of a conversation, the latest opened last.
#[derive(Debug, Default)]
pub(super) struct Logs {
    logs: Vec<Log>,
    /// Epochs that were given.
    epochs: u64,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Log {
    record: StreamRecord,
    /// From number `record.first` on.
    chunks: Vec<Arc<[u8]>>,
}

impl Logs {
    pub(super) fn log(&mut self, id: StreamId) -> Result<&mut Log, Error> {
        let found = self.logs.iter_mut().find(|log| log.record.id == id);
        found.ok_or_else(|| Error::not_found(Thing::Stream, id))
    }

    pub(super) fn open(
        &mut self,
        id: StreamId,
        at_ms: i64,
        limits: &StreamLimits,
    ) -> Result<StreamOpened, Error> {
        let others = self.logs.iter().filter(|log| log.record.id != id);
        let running = others.filter(|log| log.record.end.is_none());
        rules::check_running(running.count(), limits)?;
        let before = self.delete(id).ok();
        let ended = |log: &Log| log.record.end.is_some();
        let kept = self.logs.iter().filter(|log| ended(log)).count();
        let mut surplus = kept.saturating_sub(limits.ended);
        self.logs.retain(|log| {
            let goes = surplus > 0 && ended(log);
            surplus -= usize::from(goes);
            !goes
        });
        self.epochs += 1;
        let stream = StreamRecord::new(id, StreamEpoch(self.epochs), at_ms);
        self.logs.push(Log {
            record: stream.clone(),
            chunks: Vec::new(),
        });
        Ok(StreamOpened { stream, before })
    }

    pub(super) fn delete(&mut self, id: StreamId) -> Result<StreamRecord, Error> {
        let at = self.logs.iter().position(|log| log.record.id == id);
        let at = at.ok_or_else(|| Error::not_found(Thing::Stream, id))?;
        Ok(self.logs.remove(at).record)
    }

    pub(super) fn list(&self) -> Vec<StreamRecord> {
        self.logs.iter().map(|log| log.record.clone()).collect()
    }

    /// Whether an append may end the stream.
    pub(super) fn check_end(&mut self, claim: StreamClaim) -> Result<(), Error> {
        rules::check_claim(&self.log(claim.stream)?.record, claim)
    }

    /// The answer is in the tree.
    pub(super) fn end(&mut self, claim: StreamClaim, at_ms: i64) {
        if let Ok(log) = self.log(claim.stream) {
            log.chunks.clear();
            log.record.first = log.record.next;
            log.record.bytes = 0;
            log.record.end.get_or_insert(StreamEnd::Completed);
            log.record.updated_ms = at_ms;
        }
    }

    pub(super) fn remove_ended(&mut self) {
        self.logs.retain(|log| log.record.end.is_none());
    }
}

impl Log {
    pub(super) fn append(
        &mut self,
        append: AppendChunks,
        limits: &StreamLimits,
    ) -> Result<StreamRecord, Error> {
        let known = self.stored(rules::known_chunks(&self.record, &append));
        let known = rules::land_chunks(&self.record, &append, known, limits)?;
        for chunk in append.chunks.into_iter().skip(known) {
            self.record.next += 1;
            self.record.bytes += chunk.len() as u64;
            self.record.updated_ms = append.at_ms;
            self.chunks.push(chunk);
        }
        Ok(self.record.clone())
    }

    pub(super) fn finish(&mut self, finish: FinishStream) -> Result<StreamRecord, Error> {
        if rules::end_stream(&self.record, &finish)? {
            self.record.end = Some(finish.end);
            self.record.updated_ms = finish.at_ms;
        }
        Ok(self.record.clone())
    }

    pub(super) fn cancel(&mut self, at_ms: i64) -> StreamRecord {
        if self.record.end.is_none() && !self.record.cancel_requested {
            self.record.cancel_requested = true;
            self.record.updated_ms = at_ms;
        }
        self.record.clone()
    }

    pub(super) fn read(&self, read: &ReadChunks) -> Result<ChunkPage, Error> {
        let range = rules::chunk_range(&self.record, read)?;
        Ok(ChunkPage {
            next: StreamCursor {
                epoch: self.record.epoch,
                seq: range.end,
            },
            chunks: self.stored(range).to_vec(),
            stream: self.record.clone(),
        })
    }

    fn stored(&self, seqs: Range<u64>) -> &[Arc<[u8]>] {
        let index = |seq: u64| usize::try_from(seq.saturating_sub(self.record.first)).ok();
        let range = index(seqs.start).zip(index(seqs.end));
        let stored = range.and_then(|(from, to)| self.chunks.get(from..to));
        stored.unwrap_or_default()
    }
}
