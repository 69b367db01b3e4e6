//! [`ChunkWriter`]: gathers the small chunks of a running answer into few appends.
//!
//! A model sends a few bytes at a time, and an append costs a transaction. [`ChunkWriter`] holds
//! chunks back until there are enough of them or the oldest has waited for long enough. Not here:
//! a task of its own; its owner calls it.

use std::sync::Arc;
use std::time::Duration;

use contexture_ir::{ConversationId, Owner, StreamId};
use tokio::time::Instant;

use super::{require_streams, wait_or_poll};
use crate::contract::{
    AppendChunks, Error, FinishStream, ReadChunks, Store, StreamClaim, StreamEnd, StreamLimits,
    StreamRecord,
};
use crate::rules;
use crate::wake::StreamSignal;

/// When what was gathered is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkBatching {
    /// As soon as so many chunks wait. Default 32.
    pub chunks: usize,
    /// As soon as so many bytes wait. Default 16 KiB.
    pub bytes: usize,
    /// As soon as the oldest has waited so long. Default 250 ms.
    pub delay: Duration,
    /// How often to look whether another process asked to cancel, while nothing is written; a
    /// request made through the same store is seen at once. Default 1 s; `None`: never.
    pub poll: Option<Duration>,
}

impl Default for ChunkBatching {
    fn default() -> Self {
        Self {
            chunks: 32,
            bytes: 16 << 10,
            delay: Duration::from_millis(250),
            poll: Some(Duration::from_secs(1)),
        }
    }
}

/// The writer of a stream.
///
/// [`ChunkWriter::push_chunk`] takes a chunk and writes when it is time. Between chunks nothing runs by
/// itself: wait for [`ChunkWriter::wait_for_cancellation`] beside the model's next chunk, in a `select!`; it
/// writes what has waited for long enough, and returns when somebody wants the answer to stop.
/// Chunks are written in the order of the pushes, whatever fails: after an error they wait on, and
/// the next call tries again. Any of its futures may be dropped.
///
/// A writer that is dropped writes nothing more. What it had gathered, at most
/// [`ChunkBatching::delay`] old, is lost, and the stream goes on running, for whoever recovers it:
/// [`ChunkWriter::finish_stream`] ends it. Needs tokio's timer.
#[derive(Debug)]
pub struct ChunkWriter {
    store: Arc<dyn Store>,
    owner: Owner,
    id: ConversationId,
    batching: ChunkBatching,
    signal: StreamSignal,
    /// As the latest call left it.
    stream: StreamRecord,
    /// The number of the first that waits. The record may be ahead, after an append of which
    /// nobody heard.
    seq: u64,
    waiting: Vec<Arc<[u8]>>,
    bytes: usize,
    /// When the oldest has waited for long enough.
    due: Option<Instant>,
    /// The time given with the latest push.
    at_ms: i64,
}

impl ChunkWriter {
    /// Opens a stream for writing; gives also what was there.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::open_stream`](crate::Streams::open_stream); [`Error::Invalid`] if the
    /// store keeps no streams.
    pub async fn open(
        store: Arc<dyn Store>,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        gather: ChunkBatching,
        at_ms: i64,
    ) -> Result<(Self, Option<StreamRecord>), Error> {
        // Listened to before opening, so that no cancellation falls between the two.
        let signal = require_streams(&*store)?.stream_signal(owner, id, stream);
        let opened = require_streams(&*store)?.open_stream(owner, id, stream, at_ms);
        let opened = opened.await?;
        let writer = Self {
            owner: owner.clone(),
            id: id.clone(),
            batching: gather,
            signal,
            stream: opened.stream,
            // A new epoch begins with an empty stream.
            seq: 0,
            waiting: Vec::new(),
            bytes: 0,
            due: None,
            at_ms,
            store,
        };
        Ok((writer, opened.before))
    }

    /// What the append of the final item names.
    #[must_use]
    pub fn claim(&self) -> StreamClaim {
        self.stream.claim()
    }

    /// The stream, as the latest call left it.
    #[must_use]
    pub fn stream(&self) -> &StreamRecord {
        &self.stream
    }

    /// Takes a chunk, and writes if it is time.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for a chunk that could never be written; it is not taken. Otherwise those
    /// of [`Streams::append_chunks`](crate::Streams::append_chunks); the chunk was taken.
    pub async fn push_chunk(
        &mut self,
        chunk: impl Into<Arc<[u8]>>,
        at_ms: i64,
    ) -> Result<(), Error> {
        let chunk = chunk.into();
        let alone = AppendChunks {
            claim: self.claim(),
            // Any number will do here: sizes are checked, not the place.
            seq: 0,
            chunks: vec![Arc::clone(&chunk)],
            at_ms,
        };
        // Checked alone, before it is taken: one chunk that can never be written would block all
        // after it.
        rules::check_chunks(&alone, self.stream_limits())?;
        self.bytes += chunk.len();
        self.waiting.push(chunk);
        self.at_ms = at_ms;
        let due = Instant::now() + self.batching.delay;
        // The oldest chunk sets the time; later ones do not put it off.
        self.due.get_or_insert(due);
        let enough =
            self.waiting.len() >= self.batching.chunks || self.bytes >= self.batching.bytes;
        if enough || self.is_due() {
            self.flush_chunks().await?;
        }
        Ok(())
    }

    /// Writes what waits.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::append_chunks`](crate::Streams::append_chunks).
    pub async fn flush_chunks(&mut self) -> Result<(), Error> {
        while !self.waiting.is_empty() {
            // Cloned, not taken: a call that fails or is dropped leaves everything waiting, and the
            // repetition carries the same chunks under the same number.
            let chunks = self.next_batch();
            let count = chunks.len();
            let append = AppendChunks {
                claim: self.claim(),
                seq: self.seq,
                chunks,
                at_ms: self.at_ms,
            };
            let written =
                require_streams(&*self.store)?.append_chunks(&self.owner, &self.id, append);
            // Until here nothing was forgotten: dropped and repeated, the call is the same.
            self.stream = written.await?;
            self.seq += count as u64;
            let written = self.waiting.drain(..count);
            self.bytes -= written.map(|chunk| chunk.len()).sum::<usize>();
        }
        self.due = None;
        Ok(())
    }

    /// As many of the waiting chunks as one append may carry.
    fn next_batch(&self) -> Vec<Arc<[u8]>> {
        let limits = self.stream_limits();
        let mut bytes = 0_usize;
        let fits = |chunk: &&Arc<[u8]>| {
            bytes = bytes.saturating_add(chunk.len());
            bytes <= limits.bytes
        };
        let some = self.waiting.iter().take(limits.append_chunks.max(1));
        // Each chunk was checked alone when it was taken, so the first one always fits.
        some.take_while(fits).cloned().collect()
    }

    /// Returns when somebody asked to cancel; until then writes what has waited for long enough.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::append_chunks`](crate::Streams::append_chunks) and
    /// [`Error::StaleEpoch`]: somebody else writes the stream.
    pub async fn wait_for_cancellation(&mut self) -> Result<(), Error> {
        while !self.stream.cancel_requested {
            // Nothing waits to be written, so there is no time to keep.
            let Some(due) = self.due else {
                wait_or_poll(&mut self.signal, self.batching.poll).await;
                self.refresh_record().await?;
                continue;
            };
            let changed = wait_or_poll(&mut self.signal, self.batching.poll);
            match tokio::time::timeout_at(due, changed).await {
                Ok(()) => self.refresh_record().await?,
                // The delay is over before anybody asked to cancel: what waits is written from
                // here, since no push may come for long.
                Err(_) => self.flush_chunks().await?,
            }
        }
        Ok(())
    }

    /// Ends the stream, after writing what waits. May be repeated after an error.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::append_chunks`](crate::Streams::append_chunks) and
    /// [`Streams::finish_stream`](crate::Streams::finish_stream).
    pub async fn finish_stream(&mut self, end: StreamEnd, at_ms: i64) -> Result<(), Error> {
        self.flush_chunks().await?;
        let finish = FinishStream {
            claim: self.claim(),
            end,
            at_ms,
        };
        let finished = require_streams(&*self.store)?.finish_stream(&self.owner, &self.id, finish);
        self.stream = finished.await?;
        Ok(())
    }

    /// What became of the stream since the latest call.
    async fn refresh_record(&mut self) -> Result<(), Error> {
        // Before reading: a change in between wakes the next wait instead of being forgotten.
        self.signal.mark_unchanged();
        let nothing = ReadChunks {
            limit: 0,
            ..ReadChunks::new(self.stream.id)
        };
        let page = require_streams(&*self.store)?.read_chunks(&self.owner, &self.id, nothing);
        let page = page.await?;
        // A newer epoch means that another writer has opened the stream; this one must stop, not go
        // on with the new record.
        rules::check_claim(&page.stream, self.claim())?;
        self.stream = page.stream;
        Ok(())
    }

    fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    fn stream_limits(&self) -> &StreamLimits {
        &self.store.limits().streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::NewConversation;
    use crate::memory::MemoryStore;
    use crate::tail::{StreamTail, TailEvent, TailOptions};

    async fn store() -> (Arc<dyn Store>, Owner, ConversationId) {
        let store = Arc::new(MemoryStore::new());
        let (owner, id) = (Owner::local(), ConversationId::new("c").unwrap());
        let new = NewConversation::new(id.clone(), 0);
        store.create_conversation(&owner, new).await.unwrap();
        (store, owner, id)
    }

    const STREAM: StreamId = StreamId::from_bytes([1; 16]);

    /// What waits is written when the oldest has waited for long enough, not before.
    #[tokio::test(start_paused = true)]
    async fn what_waits_is_written_in_time() {
        let (store, owner, id) = store().await;
        let gather = ChunkBatching {
            poll: None,
            ..ChunkBatching::default()
        };
        let opened = ChunkWriter::open(Arc::clone(&store), &owner, &id, STREAM, gather, 0);
        let mut writer = opened.await.unwrap().0;
        let stored = async || {
            let list = require_streams(&*store).unwrap().list_streams(&owner, &id);
            list.await.unwrap().first().unwrap().next
        };
        let wait = async |writer: &mut ChunkWriter, ms| {
            let wait =
                tokio::time::timeout(Duration::from_millis(ms), writer.wait_for_cancellation());
            assert!(wait.await.is_err());
        };
        writer.push_chunk(*b"a", 0).await.unwrap();
        wait(&mut writer, 200).await;
        writer.push_chunk(*b"b", 0).await.unwrap();
        wait(&mut writer, 49).await;
        assert_eq!(stored().await, 0);
        wait(&mut writer, 2).await;
        assert_eq!(stored().await, 2);
        // Nobody waited, and the next chunk comes late.
        writer.push_chunk(*b"c", 0).await.unwrap();
        tokio::time::advance(Duration::from_millis(250)).await;
        writer.push_chunk(*b"d", 0).await.unwrap();
        assert_eq!(stored().await, 4);
    }

    /// A store whose writers are elsewhere: nobody is woken, so reader and writer look again.
    #[tokio::test(start_paused = true)]
    async fn what_others_write_is_found_by_looking() {
        let (store, owner, id) = store().await;
        let opened = ChunkWriter::open(
            Arc::clone(&store),
            &owner,
            &id,
            STREAM,
            ChunkBatching::default(),
            0,
        );
        let mut writer = opened.await.unwrap().0;
        let options = TailOptions::default();
        let mut tail = StreamTail::open(store, &owner, &id, STREAM, options).unwrap();
        tail.stop_listening();
        let begun = Instant::now();
        let (event, pushed) = tokio::join!(tail.next(), async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            writer.push_chunk(*b"a", 0).await?;
            writer.flush_chunks().await
        });
        pushed.unwrap();
        assert!(matches!(event, Some(Ok(TailEvent::Chunks { .. }))));
        assert_eq!(begun.elapsed().as_millis(), 100);

        writer.signal = StreamSignal::never();
        let begun = Instant::now();
        let store = Arc::clone(&writer.store);
        let cancel = require_streams(&*store)
            .unwrap()
            .cancel_stream(&owner, &id, STREAM, 0);
        let (stop, asked) = tokio::join!(writer.wait_for_cancellation(), cancel);
        stop.unwrap();
        asked.unwrap();
        assert_eq!(begun.elapsed().as_millis(), 1000);
    }
}
