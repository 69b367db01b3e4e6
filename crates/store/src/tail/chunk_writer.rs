//! [`ChunkWriter`]: batches the small chunks of a running response.
//!
//! A model sends a few bytes at a time, and an append costs a transaction. [`ChunkWriter`] holds
//! chunks back until there are enough of them or the oldest is old enough. It starts no task of its
//! own; its owner drives it.

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

/// Limits at which buffered chunks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkBatching {
    /// Number of buffered chunks. Default 32.
    pub chunks: usize,
    /// Number of buffered bytes. Default 16 KiB.
    pub bytes: usize,
    /// Age of the oldest buffered chunk. Default 250 ms.
    pub delay: Duration,
    /// Interval at which to look for cancellations by other processes while nothing is written; one
    /// made through the same store is seen at once. Default 1 s; `None`: never.
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

/// The writer of a stream, which batches chunks.
///
/// [`ChunkWriter::push_chunk`] buffers a chunk and writes when a limit is reached. Nothing runs
/// between calls: await [`ChunkWriter::wait_for_cancellation`] beside the model's next chunk in a
/// `select!`. It writes chunks that are due, and returns when somebody asks to cancel the response.
/// Chunks are written in the order of the pushes: after an error they stay buffered, and the next
/// call tries again. All futures are safe to drop.
///
/// A dropped writer writes nothing more. Its buffered chunks are lost, and the stream stays running
/// until [`ChunkWriter::finish_stream`] or somebody who recovers it ends it. Needs tokio's timer.
#[derive(Debug)]
pub struct ChunkWriter {
    store: Arc<dyn Store>,
    owner: Owner,
    id: ConversationId,
    batching: ChunkBatching,
    signal: StreamSignal,
    /// Record of the stream as the latest call returned it.
    stream: StreamRecord,
    /// Number of the first buffered chunk. The stored record may be ahead, if the answer to an
    /// append was lost.
    seq: u64,
    waiting: Vec<Arc<[u8]>>,
    bytes: usize,
    /// Time at which the oldest buffered chunk must be written.
    due: Option<Instant>,
    /// Time given with the latest push.
    at_ms: i64,
}

impl ChunkWriter {
    /// Opens a stream for writing; returns also its record before, if it existed.
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
        // Registered before opening, so that no cancellation is missed in between.
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

    /// Returns the claim that the append of the final item needs.
    #[must_use]
    pub fn claim(&self) -> StreamClaim {
        self.stream.claim()
    }

    /// Returns the stream's record as the latest call returned it.
    #[must_use]
    pub fn stream(&self) -> &StreamRecord {
        &self.stream
    }

    /// Buffers a chunk, and writes if a limit is reached.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for a chunk that could never be written; it is not buffered. Otherwise
    /// those of [`Streams::append_chunks`](crate::Streams::append_chunks); the chunk stays
    /// buffered.
    pub async fn push_chunk(
        &mut self,
        chunk: impl Into<Arc<[u8]>>,
        at_ms: i64,
    ) -> Result<(), Error> {
        let chunk = chunk.into();
        let alone = AppendChunks {
            claim: self.claim(),
            // Sizes are checked, not the number.
            seq: 0,
            chunks: vec![Arc::clone(&chunk)],
            at_ms,
        };
        // Checked before it is buffered: a chunk that can never be written would block all later
        // ones.
        rules::check_chunks(&alone, self.stream_limits())?;
        self.bytes += chunk.len();
        self.waiting.push(chunk);
        self.at_ms = at_ms;
        let due = Instant::now() + self.batching.delay;
        // The oldest chunk sets the deadline; later ones do not extend it.
        self.due.get_or_insert(due);
        let enough =
            self.waiting.len() >= self.batching.chunks || self.bytes >= self.batching.bytes;
        if enough || self.is_due() {
            self.flush_chunks().await?;
        }
        Ok(())
    }

    /// Writes all buffered chunks.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::append_chunks`](crate::Streams::append_chunks).
    pub async fn flush_chunks(&mut self) -> Result<(), Error> {
        while !self.waiting.is_empty() {
            // Cloned, not taken: if the call fails or is dropped, the retry sends the same chunks
            // with the same number.
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
            // The buffer is drained only after this await, so that dropping the future loses
            // nothing.
            self.stream = written.await?;
            self.seq += count as u64;
            let written = self.waiting.drain(..count);
            self.bytes -= written.map(|chunk| chunk.len()).sum::<usize>();
        }
        self.due = None;
        Ok(())
    }

    /// Returns as many of the buffered chunks as one append may carry.
    fn next_batch(&self) -> Vec<Arc<[u8]>> {
        let limits = self.stream_limits();
        let mut bytes = 0_usize;
        let fits = |chunk: &&Arc<[u8]>| {
            bytes = bytes.saturating_add(chunk.len());
            bytes <= limits.bytes
        };
        let some = self.waiting.iter().take(limits.append_chunks.max(1));
        // Each chunk was checked alone when it was buffered, so the first one always fits.
        some.take_while(fits).cloned().collect()
    }

    /// Returns when somebody asked to cancel; until then writes chunks that are due.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::append_chunks`](crate::Streams::append_chunks) and
    /// [`Streams::read_chunks`](crate::Streams::read_chunks); [`Error::StaleEpoch`] if another
    /// writer has opened the stream.
    pub async fn wait_for_cancellation(&mut self) -> Result<(), Error> {
        while !self.stream.cancel_requested {
            // Nothing is buffered, so there is no deadline.
            let Some(due) = self.due else {
                wait_or_poll(&mut self.signal, self.batching.poll).await;
                self.refresh_record().await?;
                continue;
            };
            let changed = wait_or_poll(&mut self.signal, self.batching.poll);
            match tokio::time::timeout_at(due, changed).await {
                Ok(()) => self.refresh_record().await?,
                // The deadline has passed. Written here, since the next push may be far away.
                Err(_) => self.flush_chunks().await?,
            }
        }
        Ok(())
    }

    /// Ends the stream, after writing all buffered chunks. May be repeated after an error.
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

    /// Reads the current record of the stream.
    async fn refresh_record(&mut self) -> Result<(), Error> {
        // Before reading, so that a change in between ends the next wait.
        self.signal.mark_unchanged();
        let nothing = ReadChunks {
            limit: 0,
            ..ReadChunks::new(self.stream.id)
        };
        let page = require_streams(&*self.store)?.read_chunks(&self.owner, &self.id, nothing);
        let page = page.await?;
        // A newer epoch means that another writer has opened the stream; this one must stop.
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
