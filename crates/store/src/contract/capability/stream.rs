//! Streams: the logs of responses that are still running.
//!
//! A capability, not part of [`Store`](crate::Store): [`Store::streams`](crate::Store::streams)
//! returns it where a backend has it. A node is stored when its item is final. Until then the parts of
//! the response go into a stream, so that readers can follow it, leave and come back, and another
//! process can recover what a crashed one had written.
//!
//! A stream is a log of chunks, opaque bytes numbered from 0. Opening it begins a new epoch: the
//! chunks of the epoch before are removed and its writer is refused from then on. So no reader ever
//! sees the text of two writers mixed. An append that stores the final item removes the chunks in
//! the same transaction ([`AppendRequest::ends_stream`](crate::AppendRequest::ends_stream)).
//!
//! Not here: following a stream ([`StreamTail`](crate::StreamTail)), batching small chunks
//! ([`ChunkWriter`](crate::ChunkWriter)), what the bytes mean.

use crate::contract::Error;
use crate::wake::StreamSignal;
use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, StreamId};
use std::fmt;
use std::sync::Arc;

/// A store that keeps the logs of running responses.
///
/// What [`Store`](crate::Store) promises holds here too: a call is a transaction, and an acknowledged
/// chunk is as durable as a node.
///
/// Streams record no events and do not change a conversation's update time. A stream that ended
/// stays until it or its conversation is deleted, or something in the conversation is redacted.
/// Opening a stream also removes the earliest-opened ended ones beyond [`StreamLimits::ended`].
#[async_trait]
pub trait Streams: Send + Sync {
    /// Opens a stream, or opens an existing one again with a new epoch.
    ///
    /// Chunks of an earlier epoch are removed, whether the stream had ended or not: read them first if
    /// they are needed.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if too many streams of the conversation are running.
    async fn open_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamOpened, Error>;

    /// Appends chunks, all of them or none.
    ///
    /// A chunk that is stored already, with the same number and bytes, is skipped. So repeating a call
    /// changes nothing, and a call that overlaps the one before stores the rest.
    ///
    /// # Errors
    ///
    /// [`Error::StaleEpoch`] after another writer opened the stream, [`Error::StreamEnded`] after its
    /// end, [`Error::ChunkConflict`] for other bytes under a stored number or for a gap,
    /// [`Error::Limit`].
    async fn append_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        append: AppendChunks,
    ) -> Result<StreamRecord, Error>;

    /// Ends a stream. The same end again changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::StaleEpoch`], [`Error::StreamEnded`] if it ended in another way,
    /// [`Error::Limit`] for a long message.
    async fn finish_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        finish: FinishStream,
    ) -> Result<StreamRecord, Error>;

    /// Asks the stream's writer to stop.
    ///
    /// The writer is woken if it uses this store object, and every record that its calls return has
    /// [`StreamRecord::cancel_requested`] set. A stream that has ended is not changed.
    async fn cancel_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamRecord, Error>;

    /// Reads chunks from a cursor on.
    ///
    /// # Errors
    ///
    /// [`Error::EpochChanged`] for a cursor of another epoch: discard what was read before.
    /// [`Error::ChunksGone`] if the chunks were removed, because the final item is in the tree.
    /// [`Error::Invalid`] for a cursor beyond the end.
    async fn read_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        read: ReadChunks,
    ) -> Result<ChunkPage, Error>;

    /// Lists the streams of a conversation, the most recently opened last.
    ///
    /// A stream without an end is running, or its writer died.
    async fn list_streams(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Vec<StreamRecord>, Error>;

    /// Deletes a stream; its writer and readers get [`Error::NotFound`].
    async fn delete_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> Result<(), Error>;

    /// Returns a signal that wakes at each change of a stream through this store object.
    ///
    /// The default never wakes, so that readers have to poll.
    fn stream_signal(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> StreamSignal {
        let _ = (owner, id, stream);
        StreamSignal::never()
    }
}

/// Record of a stream, without its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRecord {
    /// Id of the stream, unique within the conversation.
    pub id: StreamId,
    /// Epoch that the latest opening began.
    pub epoch: StreamEpoch,
    /// End of the stream; `None` while it is running.
    pub end: Option<StreamEnd>,
    /// Whether the writer has been asked to stop.
    pub cancel_requested: bool,
    /// Number of the first stored chunk: 0, or `next` once the chunks were removed.
    pub first: u64,
    /// Number of the chunk that comes next.
    pub next: u64,
    /// Size of the stored chunks, in bytes.
    pub bytes: u64,
    /// Start of this epoch in milliseconds since the Unix epoch, as given by the opener.
    pub opened_ms: i64,
    /// Time of the latest write in milliseconds since the Unix epoch, as given by the writer.
    pub updated_ms: i64,
}

impl StreamRecord {
    /// Returns the record of a stream that was just opened.
    #[must_use]
    pub fn new(id: StreamId, epoch: StreamEpoch, at_ms: i64) -> Self {
        Self {
            id,
            epoch,
            end: None,
            cancel_requested: false,
            first: 0,
            next: 0,
            bytes: 0,
            opened_ms: at_ms,
            updated_ms: at_ms,
        }
    }

    /// Returns the claim of its writer.
    #[must_use]
    pub fn claim(&self) -> StreamClaim {
        StreamClaim {
            stream: self.id,
            epoch: self.epoch,
        }
    }
}

/// Result of opening a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOpened {
    /// Record of the stream in its new epoch.
    pub stream: StreamRecord,
    /// Record of the stream before it was opened again; `None` if it is new.
    pub before: Option<StreamRecord>,
}

/// Chunks to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendChunks {
    /// Claim of the writer.
    pub claim: StreamClaim,
    /// Number of the first of the chunks.
    pub seq: u64,
    /// Chunks to append, in order.
    pub chunks: Vec<Arc<[u8]>>,
    /// Time of the append, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Request to end a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishStream {
    /// Claim of the writer.
    pub claim: StreamClaim,
    /// End that the stream gets.
    pub end: StreamEnd,
    /// Time of the end, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Request for chunks of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadChunks {
    /// Id of the stream.
    pub stream: StreamId,
    /// Position to read from; `None` for the first stored chunk of the current epoch.
    pub from: Option<StreamCursor>,
    /// Largest number of chunks of a page. Default 256.
    pub limit: usize,
}

impl ReadChunks {
    /// Returns a request that reads a stream from its beginning.
    #[must_use]
    pub fn new(stream: StreamId) -> Self {
        Self {
            stream,
            from: None,
            limit: 256,
        }
    }
}

/// A page of a stream's chunks, with its record at the same instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkPage {
    /// Chunks of the page, in order.
    pub chunks: Vec<Arc<[u8]>>,
    /// Cursor after the last of the chunks.
    pub next: StreamCursor,
    /// Record of the stream.
    pub stream: StreamRecord,
}

impl ChunkPage {
    /// Returns how the stream ended, if it did and nothing is left to read.
    #[must_use]
    pub fn end_if_complete(&self) -> Option<&StreamEnd> {
        let all = self.next.seq >= self.stream.next;
        self.stream.end.as_ref().filter(|_| all)
    }
}

/// Limits on the size and number of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Largest chunk, in bytes. Default 256 KiB.
    pub chunk_bytes: usize,
    /// Largest number of chunks of one append. Default 1,024.
    pub append_chunks: usize,
    /// Largest total size of a stream's chunks, in bytes. Default 16 MiB.
    pub bytes: usize,
    /// Largest number of streams of a conversation that run at the same time. Default 16.
    pub running: usize,
    /// Largest number of ended streams of a conversation that stay stored; opening another stream
    /// removes those that were opened first. Default 16.
    pub ended: usize,
    /// Longest message of [`StreamEnd::Failed`], in bytes. Default 4 KiB.
    pub message_bytes: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            chunk_bytes: 256 << 10,
            append_chunks: 1024,
            bytes: 16 << 20,
            running: 16,
            ended: 16,
            message_bytes: 4 << 10,
        }
    }
}

/// Number of an opening of a stream: larger is newer. A conversation never uses a number twice, not
/// even for another stream or after a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamEpoch(pub u64);

impl fmt::Display for StreamEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Claim of the writer that opened a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamClaim {
    /// Id of the claimed stream.
    pub stream: StreamId,
    /// Epoch of the stream as the writer knows it.
    pub epoch: StreamEpoch,
}

/// Position of a reader: the next chunk to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamCursor {
    /// Epoch that the reader reads.
    pub epoch: StreamEpoch,
    /// Number of the next chunk, from 0.
    pub seq: u64,
}

/// End of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The response is complete.
    Completed,
    /// The response broke off before its end.
    Failed {
        /// Reason for people to read.
        message: String,
    },
    /// The response was cancelled.
    Cancelled,
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Failed { message } => write!(f, "failed: {message}"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}
