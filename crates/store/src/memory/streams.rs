//! Streams in memory: locking, limits, and waking readers.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, StreamId};

use super::MemoryStore;
use super::stream_log::StreamLogs;
use crate::contract::{
    AppendChunks, ChunkPage, Error, FinishStream, Limits, ReadChunks, StreamOpened, StreamRecord,
    Streams,
};
use crate::rules;
use crate::wake::StreamSignal;

impl MemoryStore {
    /// Changes a stream, and wakes its listeners.
    fn change_stream<T>(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        f: impl FnOnce(&mut StreamLogs, &Limits) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _wake = self.signals.wake_stream(owner, id, stream);
        self.with_tree(owner, id, |tree| f(&mut tree.streams, &self.limits))
    }
}

#[async_trait]
impl Streams for MemoryStore {
    async fn open_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamOpened, Error> {
        self.change_stream(owner, id, stream, |logs, limits| {
            logs.open_stream(stream, at_ms, &limits.streams)
        })
    }

    async fn append_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        append: AppendChunks,
    ) -> Result<StreamRecord, Error> {
        rules::check_chunks(&append, &self.limits.streams)?;
        let stream = append.claim.stream;
        self.change_stream(owner, id, stream, |logs, limits| {
            logs.find_log(stream)?
                .append_chunks(append, &limits.streams)
        })
    }

    async fn finish_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        finish: FinishStream,
    ) -> Result<StreamRecord, Error> {
        rules::check_finish(&finish, &self.limits.streams)?;
        let stream = finish.claim.stream;
        self.change_stream(owner, id, stream, |logs, _| {
            logs.find_log(stream)?.finish_stream(&finish)
        })
    }

    async fn cancel_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamRecord, Error> {
        self.change_stream(owner, id, stream, |logs, _| {
            Ok(logs.find_log(stream)?.cancel_stream(at_ms))
        })
    }

    async fn read_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        read: ReadChunks,
    ) -> Result<ChunkPage, Error> {
        self.with_tree(owner, id, |tree| {
            tree.streams.find_log(read.stream)?.read_chunks(&read)
        })
    }

    async fn list_streams(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Vec<StreamRecord>, Error> {
        self.with_tree(owner, id, |tree| Ok(tree.streams.list_streams()))
    }

    async fn delete_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> Result<(), Error> {
        self.change_stream(owner, id, stream, |logs, _| {
            logs.delete_stream(stream).map(drop)
        })
    }

    fn stream_signal(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> StreamSignal {
        self.signals.listen_stream(owner, id, stream)
    }
}
