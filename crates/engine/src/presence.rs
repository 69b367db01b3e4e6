//! Process presence: an engine as one of the processes that share a store, and which of the others live.
//!
//! A process that claims something in a shared store is registered there under a random id and raises its number every
//! [`BEAT`], from its first claim on. Another one is dead once its number has stood still for
//! [`DEAD_AFTER`] by this process's own monotonic clock, or once the store knows that it has ended. No wall
//! clock is read, and an id of the operating system is never used.
//!
//! A claim that its holder could not withdraw itself, because it was dropped, is withdrawn with the next beat. Which branches
//! are claimed by somebody in this very process is known without the store: each live claim has a [`Seat`].
//!
//! Not here: what is claimed (`claim`, `exchange`, `ingest`, a server's idempotency keys), how a store knows that a process has ended (the stores).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use contexture_ir::{BranchName, ConversationId, Owner, ProcessId};
use contexture_store::{
    ClaimOver, Error as StoreError, ExchangeChange, ExchangeMark, Fence, ProcessBeat, Processes,
    RefChange, Store,
};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Time between two beats.
const BEAT: Duration = Duration::from_secs(2);

/// Time that a number stands still until its process counts as dead: several beats, since a busy machine may lose one.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Beats after which the rows of dead processes are looked for.
const BEATS_PER_CLEANUP: u64 = 5;

/// What is known of a process that claimed something in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It has ended, or was never seen: nobody will finish what it claimed.
    Dead,
    /// It may live.
    Alive {
        /// Time after which it counts as dead, if it gives no sign of life until then; at most 10 s.
        dead_in: Duration,
    },
}

/// The presence of one engine. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presence(Arc<Process>);

#[derive(Debug)]
struct Process {
    id: ProcessId,
    marks: AtomicU64,
    /// The task that raises the number; `None` before the first claim.
    task: tokio::sync::Mutex<Option<AbortHandle>>,
    /// The numbers of other processes, each with the time at which it was first seen.
    seen: Mutex<BTreeMap<ProcessId, (u64, Instant)>>,
    /// Marks whose exchanges ended without removing them.
    left: Mutex<Vec<LeftMark>>,
    /// The branches that are claimed in this process, each with the time of its claim in milliseconds since the Unix epoch.
    seats: Mutex<BTreeMap<SeatKey, i64>>,
    /// Claims that were dropped without being released.
    left_claims: Mutex<Vec<LeftClaim>>,
}

/// A branch of a conversation of an owner.
pub(crate) type SeatKey = (Owner, ConversationId, BranchName);

/// The place of a branch's one live claim in this process. Dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Seat {
    presence: Presence,
    key: SeatKey,
}

impl Seat {
    pub(crate) const fn presence(&self) -> &Presence {
        &self.presence
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.presence.0.seats).remove(&self.key);
    }
}

/// A claim that nobody releases any more.
#[derive(Debug)]
pub(crate) struct LeftClaim {
    pub(crate) owner: Owner,
    pub(crate) conversation: ConversationId,
    pub(crate) branch: BranchName,
    pub(crate) fence: Fence,
    /// Time at which it was dropped, in milliseconds since the Unix epoch.
    pub(crate) at_ms: i64,
}

/// A mark that nobody removes any more.
#[derive(Debug)]
struct LeftMark {
    owner: Owner,
    conversation: ConversationId,
    mark: ExchangeMark,
}

impl Presence {
    /// Returns the id of this process.
    pub(crate) fn id(&self) -> ProcessId {
        self.0.id
    }

    /// Makes sure that this process is registered and raises its number. To be called before each claim.
    pub(crate) async fn ensure_registered(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        let mut task = self.0.task.lock().await;
        // The task ends with the runtime that it was started on, which need not be the program's last.
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        if let Some(processes) = store.processes() {
            processes.beat(self.0.id).await?;
        }
        let beating = keep_beating(Arc::downgrade(&self.0), Arc::downgrade(store));
        *task = Some(tokio::spawn(beating).abort_handle());
        Ok(())
    }

    /// Returns which of some other processes live.
    pub(crate) async fn find_live(
        &self,
        processes: &dyn Processes,
        ids: &BTreeSet<ProcessId>,
    ) -> Result<BTreeSet<ProcessId>, StoreError> {
        if ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids: Vec<ProcessId> = ids.iter().copied().collect();
        // One without a row was dead long enough to be removed.
        let beats = processes.beats(&ids).await?;
        let live = beats.iter().filter(|one| !self.0.is_dead(one));
        Ok(live.map(|one| one.process).collect())
    }

    /// Returns what is known of a process.
    pub(crate) async fn process_state(
        &self,
        store: &Arc<dyn Store>,
        process: ProcessId,
    ) -> Result<ProcessState, StoreError> {
        if process == self.0.id {
            return Ok(ProcessState::Alive {
                dead_in: DEAD_AFTER,
            });
        }
        let beats = match store.processes() {
            Some(processes) => processes.beats(&[process]).await?,
            // Nobody else can use such a store.
            None => Vec::new(),
        };
        let silent = beats.first().and_then(|one| self.0.silent_time(one));
        Ok(match silent {
            Some(silent) if silent < DEAD_AFTER => ProcessState::Alive {
                dead_in: DEAD_AFTER - silent,
            },
            _ => ProcessState::Dead,
        })
    }

    /// Returns a number for a mark that no other mark of this process has.
    pub(crate) fn next_mark_number(&self) -> u64 {
        self.0.marks.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes the place of a branch's live claim in this process.
    ///
    /// # Errors
    /// The time at which it was taken, if a claim lives.
    pub(crate) fn take_seat(&self, key: SeatKey, now_ms: i64) -> Result<Seat, i64> {
        use std::collections::btree_map::Entry;
        match lock(&self.0.seats).entry(key) {
            Entry::Occupied(taken) => Err(*taken.get()),
            Entry::Vacant(free) => {
                let key = free.key().clone();
                free.insert(now_ms);
                let presence = self.clone();
                Ok(Seat { presence, key })
            }
        }
    }

    /// Has a claim released with the next beat.
    pub(crate) fn leave_claim(&self, claim: LeftClaim) {
        lock(&self.0.left_claims).push(claim);
    }

    /// Has a mark removed with the next beat.
    pub(crate) fn leave_mark(
        &self,
        owner: Owner,
        conversation: ConversationId,
        mark: ExchangeMark,
    ) {
        lock(&self.0.left).push(LeftMark {
            owner,
            conversation,
            mark,
        });
    }
}

impl Default for Process {
    fn default() -> Self {
        Self {
            // Random, also where an engine's other ids are not: two processes of one id would hide each other.
            id: ProcessId::from_bytes(uuid::Uuid::new_v4().into_bytes()),
            marks: AtomicU64::new(1),
            task: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
            left: Mutex::default(),
            seats: Mutex::default(),
            left_claims: Mutex::default(),
        }
    }
}

impl Process {
    /// Notes the number of a process, and tells whether it has stood still for too long.
    fn is_dead(&self, one: &ProcessBeat) -> bool {
        let silent = self.silent_time(one);
        silent.is_none_or(|silent| silent >= DEAD_AFTER)
    }

    /// Notes the number of a process, and returns for how long it has stood still; `None` for a process that has ended.
    fn silent_time(&self, one: &ProcessBeat) -> Option<Duration> {
        if one.is_gone {
            return None;
        }
        let now = Instant::now();
        let mut seen = lock(&self.seen);
        let (beat, since) = seen.entry(one.process).or_insert((one.beat, now));
        if *beat != one.beat {
            (*beat, *since) = (one.beat, now);
        }
        Some(now.duration_since(*since))
    }

    async fn remove_left_marks(&self, processes: &dyn Processes) {
        let left = std::mem::take(&mut *lock(&self.left));
        for one in left {
            let end = ExchangeChange::End(one.mark);
            let removed = processes.change_exchange(&one.owner, &one.conversation, end);
            match removed.await {
                // The conversation is gone, and its marks with it.
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, "the mark of an exchange is removed later");
                    lock(&self.left).push(one);
                }
            }
        }
    }

    async fn release_left_claims(&self, store: &dyn Store) {
        let left = std::mem::take(&mut *lock(&self.left_claims));
        for one in left {
            let release = RefChange::Claim {
                branch: one.branch.clone(),
                over: ClaimOver::Fence(one.fence),
                holder: None,
            };
            let released = store.change_ref(&one.owner, &one.conversation, release, one.at_ms);
            match released.await {
                // Somebody claimed the branch since, or it is gone.
                Ok(_) | Err(StoreError::StaleFence { .. } | StoreError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, "a claim of a branch is released later");
                    lock(&self.left_claims).push(one);
                }
            }
        }
    }

    /// Removes the rows of dead processes.
    async fn remove_dead(&self, processes: &dyn Processes) -> Result<(), StoreError> {
        let all = processes.list_processes().await?;
        let is_other = |one: &&ProcessBeat| one.process != self.id;
        let dead = all.iter().filter(is_other).filter(|one| self.is_dead(one));
        let dead: Vec<ProcessBeat> = dead.copied().collect();
        // What is remembered of processes that are no longer there would only grow.
        lock(&self.seen).retain(|id, _| all.iter().any(|one| one.process == *id));
        if !dead.is_empty() {
            processes.remove_processes(&dead).await?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No foreign code runs under these locks, so what they hold is consistent even after a panic.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises the number of a process until its engine or its store is gone.
async fn keep_beating(process: Weak<Process>, store: Weak<dyn Store>) {
    let mut beats: u64 = 0;
    loop {
        // Nothing is held meanwhile: a store is closed when its last user drops it.
        tokio::time::sleep(BEAT).await;
        let (Some(process), Some(store)) = (process.upgrade(), store.upgrade()) else {
            return;
        };
        let Some(processes) = store.processes() else {
            return;
        };
        beats += 1;
        if let Err(error) = processes.beat(process.id).await {
            tracing::warn!(%error, "others may take this process for dead");
        }
        process.remove_left_marks(processes).await;
        process.release_left_claims(&*store).await;
        if beats.is_multiple_of(BEATS_PER_CLEANUP)
            && let Err(error) = process.remove_dead(processes).await
        {
            tracing::warn!(%error, "dead processes are removed later");
        }
    }
}
