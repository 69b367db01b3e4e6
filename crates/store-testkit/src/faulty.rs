//! A store that fails on purpose.
//!
//! [`Faulty`] wraps any store and makes chosen calls fail before they happen, fail after they took
//! effect, or take longer. Use it to test the error handling of code that is built on a store: fail
//! the first call, then the second, and so on until nothing fails any more; or draw the faults from
//! a seed. The same plan and the same calls give the same faults.
//!
//! What is not here: faults inside a backend (a full disk, a torn page); those are its own tests.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use contexture_ir::{CallId, ConversationId, Owner, PathHash, ProcessId, ResponseId, StreamId};
use contexture_store::{
    AppendChunks, AppendRequest, Appended, BackedUp, BlobId, CallGroup, CallPage, CallRecord,
    CallSum, Calls, Capabilities, ChunkPage, CollectRequest, Collected, Compacted, Conversation,
    ConversationCalls, ConversationPage, ConversationUpdate, EntryPage, EraseScope, Erased, Error,
    Event, ExchangeChange, FinishStream, KeyScope, KeyValueEntry, KeyValues, Limits, ListCalls,
    ListConversations, ListEntries, Maintenance, NewConversation, Node, NodeQuery, NodeState,
    OwnerSize, PathIndex, PathMark, PathMatch, PathPage, PathQuery, PendingExchange, ProcessBeat,
    Processes, PutEntry, ReadChunks, ReadLoad, ReadRequest, RedactRequest, Redacted, RefChange,
    RefChanged, Refs, ResponseRecord, Search, SearchPage, SearchRequest, StateRequest, Statistics,
    Store, StreamOpened, StreamRecord, StreamSignal, Streams, SumCalls, SweepCalls, SweptCalls,
    VerifyCursor, VerifyPage,
};

use crate::method::Method;

/// Name of the environment variable that repeats a random test.
const VARIABLE: &str = "CONTEXTURE_TEST_SEED";

/// Fault that a call is made to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The call is refused as [`Error::Busy`] and has no effect.
    Before,
    /// The call takes effect and is then reported as [`Error::OutcomeUnknown`].
    After,
    /// The call lets other tasks run first and then takes effect as usual.
    Delay,
}

/// Chances of each fault, in calls per thousand. Default 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chances {
    /// Calls in a thousand with [`InjectedFault::Before`].
    pub before: u16,
    /// Calls in a thousand with [`InjectedFault::After`].
    pub after: u16,
    /// Calls in a thousand with [`InjectedFault::Delay`].
    pub delay: u16,
}

/// A store that fails on purpose; see the module's documentation.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use std::sync::Arc;
/// use contexture_ir::{CallId, ConversationId, Owner, ResponseId};
/// use contexture_store::{Error, MemoryStore, NewConversation, Store};
/// use contexture_store_testkit::{InjectedFault, Faulty};
///
/// let store = Faulty::failing_call(Arc::new(MemoryStore::new()), 1, InjectedFault::After);
/// let new = NewConversation::new(ConversationId::new("chat").unwrap(), 0);
/// let owner = Owner::local();
/// let first = store.create_conversation(&owner, new.clone()).await;
/// assert!(matches!(first, Err(Error::OutcomeUnknown { .. })));
/// let again = store.create_conversation(&owner, new).await;
/// assert!(matches!(again, Err(Error::AlreadyExists { .. })), "it had happened");
/// # });
/// ```
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Store>,
    plan: FaultPlan,
    log: Mutex<CallLog>,
    is_shared: bool,
}

#[derive(Clone, Copy, Debug)]
enum FaultPlan {
    Never,
    At { call: u64, fault: InjectedFault },
    Seeded { chances: Chances },
}

#[derive(Debug, Default)]
struct CallLog {
    random: u64,
    calls: BTreeMap<Method, u64>,
    faults: u64,
}

/// Source of an injected [`Error::OutcomeUnknown`]: the name of the method.
#[derive(Debug, thiserror::Error)]
#[error("a fault on purpose, in {0}")]
struct OnPurpose(&'static str);

impl Faulty {
    /// Returns a store that never fails and only counts calls.
    #[must_use]
    pub fn never(inner: Arc<dyn Store>) -> Self {
        Self::with_plan(inner, FaultPlan::Never, 0)
    }

    /// Returns a store whose call number `call`, counted from 1, has this fault.
    #[must_use]
    pub fn failing_call(inner: Arc<dyn Store>, call: u64, fault: InjectedFault) -> Self {
        Self::with_plan(inner, FaultPlan::At { call, fault }, 0)
    }

    /// Returns a store whose faults are drawn from a seed.
    #[must_use]
    pub fn with_seed(inner: Arc<dyn Store>, seed: u64, chances: Chances) -> Self {
        Self::with_plan(inner, FaultPlan::Seeded { chances }, seed)
    }

    fn with_plan(inner: Arc<dyn Store>, plan: FaultPlan, random: u64) -> Self {
        Self {
            inner,
            plan,
            log: Mutex::new(CallLog {
                random,
                ..CallLog::default()
            }),
            is_shared: false,
        }
    }

    /// Returns the same store as one that other processes use too: each of several over one inner store is a process.
    #[must_use]
    pub const fn as_shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Returns how often each method was called.
    #[must_use]
    pub fn call_counts(&self) -> BTreeMap<Method, u64> {
        self.lock_log().calls.clone()
    }

    /// Returns how many faults there were.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.lock_log().faults
    }

    fn lock_log(&self) -> std::sync::MutexGuard<'_, CallLog> {
        // A test that panics in another thread must not hide its own message behind a poisoned
        // lock.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_fault(&self, method: Method) -> Option<InjectedFault> {
        let mut log = self.lock_log();
        *log.calls.entry(method).or_default() += 1;
        let fault = match self.plan {
            FaultPlan::Never => None,
            FaultPlan::At { call, fault } => {
                // Counted over all methods: "the third call" is the third of any kind.
                (log.calls.values().sum::<u64>() == call).then_some(fault)
            }
            FaultPlan::Seeded { chances } => {
                // Drawn for every call, even without a fault, so that a seed always gives the same
                // sequence.
                let drawn = log.next_random() % 1000;
                let before = u64::from(chances.before);
                let after = before + u64::from(chances.after);
                let delay = after + u64::from(chances.delay);
                match drawn {
                    n if n < before => Some(InjectedFault::Before),
                    n if n < after => Some(InjectedFault::After),
                    n if n < delay => Some(InjectedFault::Delay),
                    _ => None,
                }
            }
        };
        log.faults += u64::from(fault.is_some());
        fault
    }

    async fn call_with_fault<T>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let on_purpose = OnPurpose(method.name());
        match self.draw_fault(method) {
            None => call.await,
            // The future was never polled, so nothing happened.
            Some(InjectedFault::Before) => Err(Error::Busy {
                why: on_purpose.to_string(),
            }),
            Some(InjectedFault::After) => {
                // A real error has priority: only a call that took effect can have an unknown
                // outcome.
                call.await?;
                Err(Error::OutcomeUnknown {
                    source: Box::new(on_purpose),
                })
            }
            Some(InjectedFault::Delay) => {
                // Yields several times, so that other tasks run first, without using a clock.
                for _ in 0..16 {
                    tokio::task::yield_now().await;
                }
                call.await
            }
        }
    }
}

impl CallLog {
    /// Draws a number with SplitMix64, by Steele, Lea and Flood.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[async_trait]
impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.shared |= self.is_shared;
        capabilities
    }

    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn read_load(&self) -> ReadLoad {
        self.inner.read_load()
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.inner.maintenance().map(|_| self as &dyn Maintenance)
    }

    fn search(&self) -> Option<&dyn Search> {
        self.inner.search().map(|_| self as &dyn Search)
    }

    fn path_index(&self) -> Option<&dyn PathIndex> {
        self.inner.path_index().map(|_| self as &dyn PathIndex)
    }

    fn processes(&self) -> Option<&dyn Processes> {
        self.inner.processes().map(|_| self as &dyn Processes)
    }

    fn calls(&self) -> Option<&dyn Calls> {
        self.inner.calls().map(|_| self as &dyn Calls)
    }

    fn streams(&self) -> Option<&dyn Streams> {
        self.inner.streams().map(|_| self as &dyn Streams)
    }

    async fn check_connection(&self) -> Result<(), Error> {
        let call = self.inner.check_connection();
        self.call_with_fault(Method::CheckConnection, call).await
    }

    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error> {
        let call = self.inner.create_conversation(owner, new);
        self.call_with_fault(Method::CreateConversation, call).await
    }

    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error> {
        let call = self.inner.load_conversation(owner, id);
        self.call_with_fault(Method::LoadConversation, call).await
    }

    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error> {
        let call = self.inner.list_conversations(owner, list);
        self.call_with_fault(Method::ListConversations, call).await
    }

    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error> {
        let call = self.inner.update_conversation(owner, id, update);
        self.call_with_fault(Method::UpdateConversation, call).await
    }

    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error> {
        let call = self.inner.delete_conversation(owner, id);
        self.call_with_fault(Method::DeleteConversation, call).await
    }

    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        let call = self.inner.append_items(owner, id, request);
        self.call_with_fault(Method::AppendItems, call).await
    }

    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error> {
        let call = self.inner.read_path(owner, id, request);
        self.call_with_fault(Method::ReadPath, call).await
    }

    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error> {
        let call = self.inner.find_nodes(owner, id, query);
        self.call_with_fault(Method::FindNodes, call).await
    }

    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error> {
        let call = self.inner.read_state(owner, id, request);
        self.call_with_fault(Method::ReadState, call).await
    }

    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error> {
        let call = self.inner.list_refs(owner, id);
        self.call_with_fault(Method::ListRefs, call).await
    }

    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        let call = self.inner.change_ref(owner, id, change, at_ms);
        self.call_with_fault(Method::ChangeRef, call).await
    }

    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error> {
        let call = self.inner.put_blob(owner, id, bytes);
        self.call_with_fault(Method::PutBlob, call).await
    }

    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error> {
        let call = self.inner.read_blob(owner, id, blob);
        self.call_with_fault(Method::ReadBlob, call).await
    }

    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error> {
        let call = self.inner.load_response(owner, id, response);
        self.call_with_fault(Method::LoadResponse, call).await
    }

    async fn redact_content(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: RedactRequest,
    ) -> Result<Redacted, Error> {
        let call = self.inner.redact_content(owner, id, request);
        self.call_with_fault(Method::RedactContent, call).await
    }

    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error> {
        let call = self.inner.erase_step(owner, scope);
        self.call_with_fault(Method::EraseStep, call).await
    }

    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        let call = self.inner.list_events(owner, id, after, limit);
        self.call_with_fault(Method::ListEvents, call).await
    }

    fn event_signal(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        // Signals never fail: they are only hints to read again.
        self.inner.event_signal(owner, id)
    }
}

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

/// Repeats a call while that is allowed; returns its result. `done` recognises the error which
/// shows, after an unknown outcome, that the call had taken effect.
pub(crate) async fn until_done<T, F: Future<Output = Result<T, Error>>>(
    done: &[&str],
    call: impl Fn() -> F,
) -> Option<T> {
    let mut unknown = false;
    for _ in 0..40 {
        match call().await {
            Ok(done) => return Some(done),
            Err(error) if error.is_retryable() => unknown |= error.kind() == "outcome_unknown",
            Err(error) if unknown && done.contains(&error.kind()) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("repeating it does not help");
}

/// Returns the seed of a random test, and prints it to standard error: a random one, or that of the environment variable
/// `CONTEXTURE_TEST_SEED`.
///
/// # Panics
/// The variable is set and holds no number.
///
/// ```
/// let seed = contexture_store_testkit::test_seed();
/// // In the output of a test that failed: `CONTEXTURE_TEST_SEED=…`.
/// # let _ = seed;
/// ```
#[must_use]
pub fn test_seed() -> u64 {
    let seed = match std::env::var(VARIABLE) {
        Ok(given) => match given.parse() {
            Ok(seed) => seed,
            Err(error) => panic!("{VARIABLE}={given}: {error}"),
        },
        // Seeded by the operating system for each process.
        Err(_) => RandomState::new().hash_one(std::process::id()),
    };
    #[expect(clippy::print_stderr, reason = "for whoever reads why a test failed")]
    {
        eprintln!("{VARIABLE}={seed}");
    }
    seed
}
