//! A store that fails on purpose.
//!
//! [`Faulty`] wraps any store and makes chosen calls fail before they happen, fail after they took
//! effect, or take longer. Use it to test the error handling of code that is built on a store: fail
//! the first call, then the second, and so on until nothing fails any more; or draw the faults from
//! a seed. The same plan and the same calls give the same faults.
//!
//! What is not here: faults inside a backend (a full disk, a torn page); those are its own tests.

mod capabilities;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, ResponseId};
use contexture_store::{
    AppendRequest, Appended, BlobId, Calls, Capabilities, Conversation, ConversationPage,
    ConversationUpdate, EraseScope, Erased, Error, Event, Limits, ListConversations, Maintenance,
    NewConversation, Node, NodeQuery, NodeState, PathIndex, PathPage, Processes, ReadLoad,
    ReadRequest, RedactRequest, Redacted, RefChange, RefChanged, Refs, ResponseRecord, Search,
    StateRequest, Store, StreamSignal, Streams,
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
/// use contexture_ir::{ConversationId, Owner, ResponseId};
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
