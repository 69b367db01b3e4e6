//! [`StreamTail`]: follows the chunks of a stream to its end.
//!
//! Not here: joining chunks into text, and what to show when a stream is opened again.

use std::sync::Arc;
use std::time::Duration;

use contexture_ir::{ConversationId, Owner, StreamId};
use futures_util::Stream;

use super::{require_streams, wait_or_poll};
use crate::contract::{ChunkPage, Error, ReadChunks, Store, StreamCursor, StreamEnd};
use crate::wake::StreamSignal;

/// Options for following a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailOptions {
    /// Cursor to begin at; `None`: the first stored chunk of the current epoch.
    pub from: Option<StreamCursor>,
    /// Largest number of chunks of a page. Default 256.
    pub limit: usize,
    /// Interval at which to poll for writes of other processes; a write through the same store
    /// wakes at once. Default 100 ms; `None`: never.
    pub poll: Option<Duration>,
}

impl Default for TailOptions {
    fn default() -> Self {
        Self {
            from: None,
            limit: 256,
            poll: Some(Duration::from_millis(100)),
        }
    }
}

/// Event of a followed stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TailEvent {
    /// More of the response.
    Chunks {
        /// The chunks, in order; at least one.
        chunks: Vec<Arc<[u8]>>,
        /// The cursor from which a reader of these chunks resumes.
        next: StreamCursor,
    },
    /// Everything was read, and the stream has ended. The last event.
    End(StreamEnd),
}

/// Follows a stream to its end.
///
/// Any number of readers follow one stream, each from its own position and at its own speed;
/// nothing is buffered for them. A reader that reconnects continues at [`StreamTail::cursor`].
/// Needs tokio's timer, unless [`TailOptions::poll`] is `None`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use std::sync::Arc;
/// use contexture_ir::{ConversationId, Owner, StreamId};
/// use contexture_store::{
///     AppendChunks, FinishStream, MemoryStore, NewConversation, Store, StreamEnd, StreamTail,
///     TailEvent, TailOptions,
/// };
///
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let (owner, id) = (Owner::local(), ConversationId::new("chat").unwrap());
/// store.create_conversation(&owner, NewConversation::new(id.clone(), 0)).await?;
/// let streams = store.streams().unwrap();
/// let stream = StreamId::derive("example", &[]);
/// let claim = streams.open_stream(&owner, &id, stream, 0).await?.stream.claim();
/// let chunks = vec![Arc::from(*b"Hel"), Arc::from(*b"lo")];
/// streams.append_chunks(&owner, &id, AppendChunks { claim, seq: 0, chunks, at_ms: 0 }).await?;
/// let finish = FinishStream { claim, end: StreamEnd::Completed, at_ms: 0 };
/// streams.finish_stream(&owner, &id, finish).await?;
///
/// let mut tail = StreamTail::open(store, &owner, &id, stream, TailOptions::default())?;
/// let mut text = Vec::new();
/// while let Some(event) = tail.next().await {
///     match event? {
///         TailEvent::Chunks { chunks, .. } => text.extend(chunks.concat()),
///         TailEvent::End(end) => assert_eq!(end, StreamEnd::Completed),
///     }
/// }
/// assert_eq!(text, b"Hello");
/// # Ok::<(), contexture_store::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct StreamTail {
    store: Arc<dyn Store>,
    owner: Owner,
    id: ConversationId,
    read: ReadChunks,
    poll: Option<Duration>,
    signal: StreamSignal,
    /// End that the latest page reported and that was not returned yet.
    end: Option<StreamEnd>,
    over: bool,
}

impl StreamTail {
    /// Creates a follower; nothing is read yet.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the store keeps no streams.
    pub fn open(
        store: Arc<dyn Store>,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        options: TailOptions,
    ) -> Result<Self, Error> {
        let signal = require_streams(&*store)?.stream_signal(owner, id, stream);
        Ok(Self {
            store,
            owner: owner.clone(),
            id: id.clone(),
            read: ReadChunks {
                stream,
                from: options.from,
                // With a limit of 0 the loop would never make progress.
                limit: options.limit.max(1),
            },
            poll: options.poll,
            signal,
            end: None,
            over: false,
        })
    }

    /// Returns the cursor of the next read; `None` before the first page.
    #[must_use]
    pub fn cursor(&self) -> Option<StreamCursor> {
        self.read.from
    }

    /// Waits for the next event; returns `None` after the end. A dropped call loses nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Streams::read_chunks`](crate::Streams::read_chunks). After a
    /// [retryable](Error::is_retryable) one the call may be repeated, any other is the last event.
    /// [`Error::NotFound`]: the stream was deleted. [`Error::EpochChanged`]: the response begins
    /// again; open another tail.
    pub async fn next(&mut self) -> Option<Result<TailEvent, Error>> {
        while !self.over {
            if let Some(end) = self.end.take() {
                self.over = true;
                return Some(Ok(TailEvent::End(end)));
            }
            self.signal.mark_unchanged();
            match self.read_page().await {
                Err(error) => {
                    self.over = !error.is_retryable();
                    return Some(Err(error));
                }
                Ok(page) => {
                    let next = page.next;
                    self.end = page.end_if_complete().cloned();
                    self.read.from = Some(next);
                    let (chunks, read) = (page.chunks, next.seq);
                    if !chunks.is_empty() {
                        return Some(Ok(TailEvent::Chunks { chunks, next }));
                    }
                    if self.end.is_none() && read >= page.stream.next {
                        wait_or_poll(&mut self.signal, self.poll).await;
                    }
                }
            }
        }
        None
    }

    /// Converts the follower into a stream of events.
    pub fn into_stream(self) -> impl Stream<Item = Result<TailEvent, Error>> + Send {
        futures_util::stream::unfold(self, async |mut tail| {
            let event = tail.next().await?;
            Some((event, tail))
        })
    }

    /// Simulates a writer in another process.
    #[cfg(test)]
    pub(crate) fn stop_listening(&mut self) {
        self.signal = StreamSignal::never();
    }

    async fn read_page(&self) -> Result<ChunkPage, Error> {
        let streams = require_streams(&*self.store)?;
        streams.read_chunks(&self.owner, &self.id, self.read).await
    }
}
