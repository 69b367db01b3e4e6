//! Heavy work: what parses, redacts, compiles or rewrites large bodies, or reads whole stored conversations, on threads of its own
//! and in turn by owner.
//!
//! The threads that accept connections, read from the store and pass answers on never do such work, so that no request
//! waits for another's computing. The work is a future; these threads poll it, and while it waits for the store or for
//! another request it takes none of them. Not here: what is heavy (`http::heavy`, `proxy`).

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use async_task::{Runnable, Task};
use contexture::Owner;
use contexture::ir::Cancel;
use contexture::store::{FairPermits, PermitLimits};
use tokio::runtime::Handle;
use tracing::Instrument as _;

/// Bytes of a body from which reading it is heavy work. Smaller ones take less time than handing them over saves.
pub(crate) const HEAVY_BYTES: usize = 64 << 10;

/// Threads for work behind which passing requests and answers on never waits.
#[derive(Debug)]
pub(crate) struct WorkPool {
    /// What its threads are called.
    name: &'static str,
    priority: Priority,
    queue: Arc<WorkQueue>,
    /// Set once the threads run: they need a runtime, and only requests that come have one for sure.
    started: OnceLock<()>,
}

/// Who has the processor first, where others want it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priority {
    /// The threads that accept connections and pass answers on.
    BehindOthers,
    /// Nobody: clients wait for this work.
    AsOthers,
}

impl WorkPool {
    /// Creates the pool for large requests: a thread less than there are processors, but at least two.
    pub(crate) fn for_large_requests() -> Self {
        Self::new(
            "contexture-work",
            background_threads(),
            Priority::BehindOthers,
        )
    }

    /// Creates the pool that stores small requests, with as many threads.
    pub(crate) fn for_captures() -> Self {
        Self::new(
            "contexture-capture",
            background_threads(),
            Priority::BehindOthers,
        )
    }

    /// Creates the pool that rewrites small requests, whose clients wait. One thread more than there are processors: one owner
    /// can use all of these, and another's request still finds a thread.
    pub(crate) fn for_rewrites() -> Self {
        Self::new(
            "contexture-rewrite",
            count_processors() + 1,
            Priority::AsOthers,
        )
    }

    fn new(name: &'static str, threads: usize, priority: Priority) -> Self {
        Self {
            name,
            priority,
            queue: Arc::new(WorkQueue::new(threads)),
            started: OnceLock::new(),
        }
    }

    /// Runs work for an owner, and returns its result. Dropped, the work is called off: it ends where it next awaits
    /// something or looks at its [`Cancel`].
    pub(crate) async fn run<T, F>(&self, owner: &Owner, work: impl FnOnce(Cancel) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let cancel = Cancel::new();
        let _waiting = cancel.cancel_on_drop();
        self.start_task(owner, work(cancel)).await
    }

    /// Begins work for an owner, which goes to its end whoever waits for it.
    pub(crate) fn spawn(&self, owner: &Owner, work: impl Future<Output = ()> + Send + 'static) {
        self.start_task(owner, work).detach();
    }

    fn start_task<T, F>(&self, owner: &Owner, work: F) -> Task<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.started.get_or_init(|| self.start_threads());
        let work = work.in_current_span();
        let (queue, owner) = (Arc::clone(&self.queue), owner.clone());
        let schedule = move |runnable| queue.push(&owner, runnable);
        let (runnable, task) = async_task::Builder::new()
            // A panic belongs to the request, which answers it.
            .propagate_panic(true)
            .spawn(|()| work, schedule);
        runnable.schedule();
        task
    }

    fn start_threads(&self) {
        let runtime = Handle::current();
        for number in 0..self.queue.threads {
            let (queue, runtime) = (Arc::clone(&self.queue), runtime.clone());
            let priority = self.priority;
            let thread = thread::Builder::new().name(format!("{}-{number}", self.name));
            let started = thread.spawn(move || {
                if priority == Priority::BehindOthers {
                    yield_to_others();
                }
                // What the work spawns or waits for belongs to the server's runtime.
                let _runtime = runtime.enter();
                queue.run_in_turn();
            });
            if let Err(error) = started {
                tracing::error!(%error, "a thread of a work pool was not started");
            }
        }
    }
}

/// Creates the permits for work that reads whole stored conversations, each of which can take as much memory as a conversation
/// has: as many of an owner as there are processors, and twice as many in all.
pub(crate) fn permits_for_stored_work() -> FairPermits {
    let per_owner = count_processors().max(2);
    FairPermits::new(PermitLimits {
        total: 2 * per_owner,
        per_owner,
    })
}

/// Returns how many threads a pool has that yields to what clients wait for.
fn background_threads() -> usize {
    count_processors().saturating_sub(1).max(2)
}

fn count_processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Lets threads that only pass on what others wait for have the processor before this one.
///
/// On Linux, where each thread has a priority of its own: elsewhere this would be that of the whole process.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "heavy work has the priority of all other work");
    }
}

impl Drop for WorkPool {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// By how much heavy work yields: about a third of the processor where others want it too.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Work that is ready to go on, in turn by owner.
#[derive(Debug)]
struct WorkQueue {
    threads: usize,
    state: Mutex<QueueState>,
    is_ready: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    owners: BTreeMap<Owner, OwnerWork>,
    /// Owners with work that is ready, the next one first.
    turns: VecDeque<Owner>,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct OwnerWork {
    /// Threads that are busy with it.
    running: usize,
    ready: VecDeque<Runnable>,
}

impl WorkQueue {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
            is_ready: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // Nothing foreign runs under the lock, so the state is consistent even if a thread has panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, owner: &Owner, work: Runnable) {
        {
            let mut state = self.lock();
            if state.is_closed {
                // Dropped outside of the lock below: the work's destructors may wake other work.
                drop(state);
                return drop(work);
            }
            state.push(owner, work);
        }
        metrics::gauge!("contexture_work_waiting").increment(1);
        self.is_ready.notify_one();
    }

    /// Runs what is ready until the queue is closed.
    fn run_in_turn(&self) {
        let mut state = self.lock();
        loop {
            // All threads but one: another owner's work is never behind work of this one.
            if let Some((owner, work)) = state.take_next(self.threads - 1) {
                drop(state);
                metrics::gauge!("contexture_work_waiting").decrement(1);
                metrics::gauge!("contexture_work_running").increment(1);
                work.run();
                metrics::gauge!("contexture_work_running").decrement(1);
                state = self.lock();
                state.finish(&owner);
                // Work of this owner may have been passed over because it had all the threads it may have.
                self.is_ready.notify_one();
            } else if state.is_closed {
                return;
            } else {
                state = self
                    .is_ready
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn close(&self) {
        let abandoned = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.owners)
        };
        self.is_ready.notify_all();
        drop(abandoned);
    }
}

impl QueueState {
    fn push(&mut self, owner: &Owner, work: Runnable) {
        let own = self.owners.entry(owner.clone()).or_default();
        own.ready.push_back(work);
        if own.ready.len() == 1 {
            self.turns.push_back(owner.clone());
        }
    }

    /// Takes the next work of the first in line who has fewer than `most` threads.
    fn take_next(&mut self, most: usize) -> Option<(Owner, Runnable)> {
        let running = |owner: &Owner| self.owners.get(owner).map_or(0, |own| own.running);
        let at = self.turns.iter().position(|owner| running(owner) < most)?;
        let owner = self.turns.remove(at)?;
        let own = self.owners.get_mut(&owner)?;
        let work = own.ready.pop_front()?;
        own.running += 1;
        if !own.ready.is_empty() {
            // Behind all others who wait.
            self.turns.push_back(owner.clone());
        }
        Some((owner, work))
    }

    fn finish(&mut self, owner: &Owner) {
        let Some(own) = self.owners.get_mut(owner) else {
            return;
        };
        own.running = own.running.saturating_sub(1);
        // Owners who are idle take no memory.
        if own.running == 0 && own.ready.is_empty() {
            self.owners.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::new(name).unwrap()
    }

    #[tokio::test]
    async fn dropped_work_is_called_off_and_frees_its_thread() {
        let pool = WorkPool::for_large_requests();
        let (started, has_started) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let ada = owner("ada");
        let work = pool.run(&ada, |cancel| async move {
            started.send(()).unwrap();
            // Computes and never awaits, as a compile does.
            while !cancel.is_cancelled() {
                thread::yield_now();
            }
            ended.send(()).unwrap();
        });
        tokio::select! {
            () = work => panic!("it runs until it is called off"),
            () = async { has_started.await.unwrap() } => {}
        }
        has_ended.await.unwrap();
        assert_eq!(pool.run(&ada, |_| async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn work_that_waits_is_dropped_and_takes_no_thread() {
        let pool = WorkPool::for_large_requests();
        let ada = owner("ada");
        let (held, is_dropped) = oneshot::channel::<()>();
        let waits = pool.run(&ada, |_| async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        // Far more than there are threads.
        let more = (0..64).map(|_| pool.run(&ada, |_| std::future::pending::<()>()));
        let all = futures_util::future::join(waits, futures_util::future::join_all(more));
        tokio::select! {
            _ = all => panic!("these never end"),
            seven = async {
                tokio::task::yield_now().await;
                pool.run(&ada, |_| async { 7 }).await
            } => assert_eq!(seven, 7),
        }
        // The sender was dropped with the work.
        assert!(is_dropped.await.is_err());
    }

    #[tokio::test]
    async fn one_owner_leaves_a_thread_to_another() {
        let pool = WorkPool::for_large_requests();
        let (ada, bob) = (owner("ada"), owner("bob"));
        let computes = |cancel: Cancel| async move {
            while !cancel.is_cancelled() {
                thread::yield_now();
            }
        };
        let all = futures_util::future::join_all((0..64).map(|_| pool.run(&ada, computes)));
        tokio::select! {
            _ = all => panic!("these never end"),
            seven = async {
                tokio::task::yield_now().await;
                pool.run(&bob, |_| async { 7 }).await
            } => assert_eq!(seven, 7),
        }
    }

    #[tokio::test]
    async fn work_uses_the_runtime_of_the_server() {
        let pool = WorkPool::for_large_requests();
        let ada = owner("ada");
        let slept = pool.run(&ada, |_| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::spawn(async { 7 }).await.unwrap()
        });
        assert_eq!(slept.await, 7);
    }

    #[tokio::test]
    async fn a_panic_is_the_requests() {
        let pool = WorkPool::for_large_requests();
        let ada = owner("ada");
        let panics = pool.run(&ada, |_| async { panic!("of the work") });
        let caught = crate::http::panics::catch_panic::<()>(panics).await;
        assert!(caught.is_err());
        assert_eq!(pool.run(&ada, |_| async { 7 }).await, 7);
    }
}
