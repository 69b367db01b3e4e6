//! Capabilities that not every store has, failing on purpose like the rest.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{CallId, ConversationId, Owner, PathHash, ProcessId, StreamId};
use contexture_store::{
    AppendChunks, BackedUp, CallGroup, CallPage, CallRecord, CallSum, Calls, ChunkPage,
    CollectRequest, Collected, Compacted, ConversationCalls, EntryPage, Error, ExchangeChange,
    FinishStream, KeyScope, KeyValueEntry, KeyValues, ListCalls, ListEntries, Maintenance,
    OwnerSize, PathIndex, PathMark, PathMatch, PathQuery, PendingExchange, ProcessBeat, Processes,
    PutEntry, ReadChunks, Search, SearchPage, SearchRequest, Statistics, StreamOpened,
    StreamRecord, StreamSignal, Streams, SumCalls, SweepCalls, SweptCalls, VerifyCursor,
    VerifyPage,
};

use super::Faulty;
use crate::method::Method;

#[async_trait]
impl KeyValues for Faulty {
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error> {
        let call = self.inner.get_entry(owner, scope, key);
        self.call_with_fault(Method::GetEntry, call).await
    }

    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error> {
        let call = self.inner.list_entries(owner, list);
        self.call_with_fault(Method::ListEntries, call).await
    }

    async fn put_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        let call = self.inner.put_entry(owner, scope, put);
        self.call_with_fault(Method::PutEntry, call).await
    }
}

#[async_trait]
impl Search for Faulty {
    async fn search_nodes(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error> {
        let Some(search) = self.inner.search() else {
            return Err(Error::invalid_argument("search", "this store has none"));
        };
        self.call_with_fault(Method::SearchNodes, search.search_nodes(owner, request))
            .await
    }
}

impl Faulty {
    fn inner_streams(&self) -> Result<&dyn Streams, Error> {
        let none = || Error::invalid_argument("streams", "this store has none");
        self.inner.streams().ok_or_else(none)
    }
}

#[async_trait]
impl Streams for Faulty {
    async fn open_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamOpened, Error> {
        let call = self.inner_streams()?.open_stream(owner, id, stream, at_ms);
        self.call_with_fault(Method::OpenStream, call).await
    }

    async fn append_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        append: AppendChunks,
    ) -> Result<StreamRecord, Error> {
        let call = self.inner_streams()?.append_chunks(owner, id, append);
        self.call_with_fault(Method::AppendChunks, call).await
    }

    async fn finish_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        finish: FinishStream,
    ) -> Result<StreamRecord, Error> {
        let call = self.inner_streams()?.finish_stream(owner, id, finish);
        self.call_with_fault(Method::FinishStream, call).await
    }

    async fn cancel_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
        at_ms: i64,
    ) -> Result<StreamRecord, Error> {
        let streams = self.inner_streams()?;
        let call = streams.cancel_stream(owner, id, stream, at_ms);
        self.call_with_fault(Method::CancelStream, call).await
    }

    async fn read_chunks(
        &self,
        owner: &Owner,
        id: &ConversationId,
        read: ReadChunks,
    ) -> Result<ChunkPage, Error> {
        let call = self.inner_streams()?.read_chunks(owner, id, read);
        self.call_with_fault(Method::ReadChunks, call).await
    }

    async fn list_streams(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Vec<StreamRecord>, Error> {
        let call = self.inner_streams()?.list_streams(owner, id);
        self.call_with_fault(Method::ListStreams, call).await
    }

    async fn delete_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> Result<(), Error> {
        let call = self.inner_streams()?.delete_stream(owner, id, stream);
        self.call_with_fault(Method::DeleteStream, call).await
    }

    fn stream_signal(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> StreamSignal {
        let streams = self.inner.streams();
        let signal = streams.map(|streams| streams.stream_signal(owner, id, stream));
        signal.unwrap_or_else(StreamSignal::never)
    }
}

impl Faulty {
    fn inner_paths(&self) -> Result<&dyn PathIndex, Error> {
        let none = || Error::invalid_argument("paths", "this store has no index of them");
        self.inner.path_index().ok_or_else(none)
    }
}

#[async_trait]
impl PathIndex for Faulty {
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error> {
        let call = self.inner_paths()?.find_path_hashes(owner, query);
        self.call_with_fault(Method::FindPathHashes, call).await
    }

    async fn put_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
        version: u32,
        marks: Vec<PathMark>,
    ) -> Result<(), Error> {
        let call = self.inner_paths()?.put_paths(owner, id, version, marks);
        self.call_with_fault(Method::PutPaths, call).await
    }
}

impl Faulty {
    fn inner_processes(&self) -> Result<&dyn Processes, Error> {
        let none = || Error::invalid_argument("processes", "this store has none");
        self.inner.processes().ok_or_else(none)
    }
}

#[async_trait]
impl Processes for Faulty {
    async fn beat(&self, process: ProcessId) -> Result<u64, Error> {
        let call = self.inner_processes()?.beat(process);
        self.call_with_fault(Method::Beat, call).await
    }

    async fn beats(&self, processes: &[ProcessId]) -> Result<Vec<ProcessBeat>, Error> {
        let call = self.inner_processes()?.beats(processes);
        self.call_with_fault(Method::Beats, call).await
    }

    async fn list_processes(&self) -> Result<Vec<ProcessBeat>, Error> {
        let call = self.inner_processes()?.list_processes();
        self.call_with_fault(Method::ListProcesses, call).await
    }

    async fn remove_processes(&self, dead: &[ProcessBeat]) -> Result<u64, Error> {
        let call = self.inner_processes()?.remove_processes(dead);
        self.call_with_fault(Method::RemoveProcesses, call).await
    }

    async fn change_exchange(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: ExchangeChange,
    ) -> Result<(), Error> {
        let call = self.inner_processes()?.change_exchange(owner, id, change);
        self.call_with_fault(Method::ChangeExchange, call).await
    }

    async fn find_exchanges(
        &self,
        owner: &Owner,
        hashes: Option<&[PathHash]>,
    ) -> Result<Vec<PendingExchange>, Error> {
        let call = self.inner_processes()?.find_exchanges(owner, hashes);
        self.call_with_fault(Method::FindExchanges, call).await
    }
}

impl Faulty {
    fn inner_calls(&self) -> Result<&dyn Calls, Error> {
        let none = || Error::invalid_argument("calls", "this store has none");
        self.inner.calls().ok_or_else(none)
    }
}

#[async_trait]
impl Calls for Faulty {
    async fn record_calls(&self, owner: &Owner, calls: Vec<CallRecord>) -> Result<(), Error> {
        let call = self.inner_calls()?.record_calls(owner, calls);
        self.call_with_fault(Method::RecordCalls, call).await
    }

    async fn load_call(&self, owner: &Owner, id: CallId) -> Result<Option<CallRecord>, Error> {
        let call = self.inner_calls()?.load_call(owner, id);
        self.call_with_fault(Method::LoadCall, call).await
    }

    async fn list_calls(&self, owner: &Owner, list: ListCalls) -> Result<CallPage, Error> {
        let call = self.inner_calls()?.list_calls(owner, list);
        self.call_with_fault(Method::ListCalls, call).await
    }

    async fn sum_calls(
        &self,
        owner: &Owner,
        sum: SumCalls,
    ) -> Result<Vec<(CallGroup, CallSum)>, Error> {
        let call = self.inner_calls()?.sum_calls(owner, sum);
        self.call_with_fault(Method::SumCalls, call).await
    }

    async fn sum_conversations(
        &self,
        owner: &Owner,
        conversations: &[ConversationId],
    ) -> Result<Vec<ConversationCalls>, Error> {
        let call = self.inner_calls()?.sum_conversations(owner, conversations);
        self.call_with_fault(Method::SumConversations, call).await
    }

    async fn list_call_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>, Error> {
        let call = self.inner_calls()?.list_call_owners(after, limit);
        self.call_with_fault(Method::ListCallOwners, call).await
    }

    async fn load_call_body(&self, owner: &Owner, id: CallId) -> Result<Option<Arc<[u8]>>, Error> {
        let call = self.inner_calls()?.load_call_body(owner, id);
        self.call_with_fault(Method::LoadCallBody, call).await
    }

    async fn sweep_calls(&self, owner: &Owner, sweep: SweepCalls) -> Result<SweptCalls, Error> {
        let call = self.inner_calls()?.sweep_calls(owner, sweep);
        self.call_with_fault(Method::SweepCalls, call).await
    }
}

impl Faulty {
    fn inner_maintenance(&self) -> Result<&dyn Maintenance, Error> {
        let none = || Error::invalid_argument("maintenance", "this store has none");
        self.inner.maintenance().ok_or_else(none)
    }
}

#[async_trait]
impl Maintenance for Faulty {
    async fn verify_page(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: Option<VerifyCursor>,
    ) -> Result<VerifyPage, Error> {
        let call = self.inner_maintenance()?.verify_page(owner, id, after);
        self.call_with_fault(Method::VerifyPage, call).await
    }

    async fn verify_medium(&self) -> Result<Vec<String>, Error> {
        let call = self.inner_maintenance()?.verify_medium();
        self.call_with_fault(Method::VerifyMedium, call).await
    }

    async fn read_statistics(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Statistics, Error> {
        let call = self.inner_maintenance()?.read_statistics(owner, id);
        self.call_with_fault(Method::ReadStatistics, call).await
    }

    async fn list_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<OwnerSize>, Error> {
        let call = self.inner_maintenance()?.list_owners(after, limit);
        self.call_with_fault(Method::ListOwners, call).await
    }

    async fn collect_blobs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: CollectRequest,
    ) -> Result<Collected, Error> {
        let call = self.inner_maintenance()?.collect_blobs(owner, id, request);
        self.call_with_fault(Method::CollectBlobs, call).await
    }

    async fn compact_storage(&self) -> Result<Compacted, Error> {
        let call = self.inner_maintenance()?.compact_storage();
        self.call_with_fault(Method::CompactStorage, call).await
    }

    async fn back_up(&self, to: &Path) -> Result<BackedUp, Error> {
        let call = self.inner_maintenance()?.back_up(to);
        self.call_with_fault(Method::BackUp, call).await
    }
}
