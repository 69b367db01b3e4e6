//! [`Streams`] on PostgreSQL: each call is a transaction that wakes readers.
//!
//! Only readers of this process are woken; those of others poll.
//!
//! Not here: the rows.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, StreamId};
use contexture_store::{
    AppendChunks, ChunkPage, Error, FinishStream, ReadChunks, StreamOpened, StreamRecord,
    StreamSignal, Streams, rules,
};

use crate::connection::pool::Access;
use crate::store::PostgresStore;
use crate::streams;

#[async_trait]
impl Streams for PostgresStore {
    async fn open_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamOpened, Error> {
        let _wake = self.signals.wake_stream(owner, id, stream);
        let limits = &self.limits.streams;
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(streams::open_stream(tx, owner, id, stream, at_ms, limits))
            })
            .await
    }

    async fn append_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        append: AppendChunks,
    ) -> Result<StreamRecord, Error> {
        rules::check_chunks(&append, &self.limits.streams)?;
        let _wake = self.signals.wake_stream(owner, id, append.claim.stream);
        let limits = &self.limits.streams;
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(streams::append_chunks(tx, owner, id, &append, limits))
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
        let _wake = self.signals.wake_stream(owner, id, finish.claim.stream);
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(streams::finish_stream(tx, owner, id, &finish))
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
        let _wake = self.signals.wake_stream(owner, id, stream);
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(streams::cancel_stream(tx, owner, id, stream, at_ms))
            })
            .await
    }

    async fn read_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        read: ReadChunks,
    ) -> Result<ChunkPage, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(streams::read_chunks(tx, owner, id, &read))
            })
            .await
    }

    async fn list_streams(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Vec<StreamRecord>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(streams::list_streams(tx, owner, id))
            })
            .await
    }

    async fn delete_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> Result<(), Error> {
        let _wake = self.signals.wake_stream(owner, id, stream);
        self.server
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(streams::delete_stream(tx, owner, id, stream))
            })
            .await
    }

    fn stream_signal(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> StreamSignal {
        self.signals.listen_stream(owner, id, stream)
    }
}
