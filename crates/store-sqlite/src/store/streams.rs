//! [`Streams`] on SQLite: calls sent to the write thread or to the read pool, and waking readers.
//!
//! Not here: the rows.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, StreamId};
use contexture_store::{
    AppendChunks, ChunkPage, Error, FinishStream, ReadChunks, StreamLimits, StreamOpened,
    StreamRecord, StreamSignal, Streams, rules,
};
use rusqlite::Connection;

use crate::error::RowError;
use crate::rows::conversation_row::ConversationRow;
use crate::store::SqliteStore;
use crate::streams;
use crate::worker::call_queue::CallLoad;

impl SqliteStore {
    /// Changes a stream on the write thread.
    async fn change_stream<T: Send + 'static>(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        bytes: usize,
        f: impl FnOnce(&Connection, &ConversationRow, &StreamLimits) -> Result<T, RowError>
        + Send
        + 'static,
    ) -> Result<T, Error> {
        // The guard travels with the result: the caller drops it, or the write thread after the
        // commit if the caller is gone, and that wakes the readers.
        let wake = self.signals.wake_stream(owner, id, stream);
        let (owner, id, limits) = (owner.clone(), id.clone(), Arc::clone(&self.limits));
        let write = self.write_transaction(CallLoad::of(&owner).with_bytes(bytes), move |conn| {
            let conv = ConversationRow::load(conn, &owner, &id)?;
            Ok((f(conn, &conv, &limits.streams)?, wake))
        });
        Ok(write.await?.0)
    }
}

#[async_trait]
impl Streams for SqliteStore {
    async fn open_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamOpened, Error> {
        self.change_stream(owner, id, stream, 0, move |conn, conv, limits| {
            streams::open_stream(conn, conv, stream, at_ms, limits)
        })
        .await
    }

    async fn append_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        append: AppendChunks,
    ) -> Result<StreamRecord, Error> {
        let bytes = rules::check_chunks(&append, &self.limits.streams)?;
        let stream = append.claim.stream;
        self.change_stream(owner, id, stream, bytes, move |conn, conv, limits| {
            streams::append_chunks(conn, conv, &append, limits)
        })
        .await
    }

    async fn finish_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        finish: FinishStream,
    ) -> Result<StreamRecord, Error> {
        rules::check_finish(&finish, &self.limits.streams)?;
        let stream = finish.claim.stream;
        self.change_stream(owner, id, stream, 0, move |conn, conv, _| {
            streams::finish_stream(conn, conv, &finish)
        })
        .await
    }

    async fn cancel_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamRecord, Error> {
        self.change_stream(owner, id, stream, 0, move |conn, conv, _| {
            streams::cancel_stream(conn, conv, stream, at_ms)
        })
        .await
    }

    async fn read_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        read: ReadChunks,
    ) -> Result<ChunkPage, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            streams::read_chunks(conn, conv, &read)
        })
        .await
    }

    async fn list_streams(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Vec<StreamRecord>, Error> {
        self.read_conversation(owner, id, streams::list_streams)
            .await
    }

    async fn delete_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> Result<(), Error> {
        self.change_stream(owner, id, stream, 0, move |conn, conv, _| {
            streams::delete_stream(conn, conv, stream)
        })
        .await
    }

    fn stream_signal(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> StreamSignal {
        self.signals.listen_stream(owner, id, stream)
    }
}
