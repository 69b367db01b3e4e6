//! Permits for calls of a store: how many run at once, and whose turn it is.
//!
//! A call that may be long must not delay another owner's. So a backend gives each kind of call its
//! own [`FairPermits`]: at most so many in all, at most so many for one owner, and owners that wait
//! are served in turn, whatever the number of calls that each of them has queued.
//!
//! Not here: which calls are long, and how a running one is stopped; backends know that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_ir::Owner;
use tokio::sync::oneshot;

/// How many permits there are. Numbers below 1 count as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitLimits {
    /// Permits in all.
    pub total: usize,
    /// Permits that one owner may hold.
    pub per_owner: usize,
}

/// Permits that owners share fairly. Clones share the permits.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use contexture_ir::Owner;
/// use contexture_store::{FairPermits, PermitLimits};
///
/// let permits = FairPermits::new(PermitLimits { total: 4, per_owner: 2 });
/// let first = permits.acquire_permit(Some(&Owner::local())).await;
/// drop(first);
/// assert_eq!(permits.times_waited(), 0);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct FairPermits(Arc<Shared>);

/// What the reads of a store object have waited for, and how many were stopped, since it was opened. All 0 where a backend
/// limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadLoad {
    /// Point reads that had to wait for their turn.
    pub point_waits: u64,
    /// Reads of many nodes of a path (whole conversations, exports) that had to wait for their turn.
    pub path_waits: u64,
    /// Scans (searches, lists of conversations, statistics) that had to wait for their turn.
    pub scan_waits: u64,
    /// Scans that run now.
    pub running_scans: usize,
    /// Calls that were stopped because their callers left or their time was up.
    pub interrupted: u64,
}

#[derive(Debug)]
struct Shared {
    limits: PermitLimits,
    queue: Mutex<PermitQueue>,
    waited: AtomicU64,
}

/// Whom a permit is counted for; `None` stands for work that belongs to no owner.
type Holder = Option<Owner>;

/// What is held and who waits. Whenever the lock is free, nobody waits who could have a permit.
#[derive(Debug, Default)]
struct PermitQueue {
    held: usize,
    holders: BTreeMap<Holder, HolderQueue>,
    /// Holders with somebody waiting, the next one first.
    turns: VecDeque<Holder>,
}

#[derive(Debug, Default)]
struct HolderQueue {
    held: usize,
    /// Whether the holder has a place in `turns`.
    has_turn: bool,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// A permit; dropping it gives it back.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    /// `None` once given back.
    holder: Option<Holder>,
}

impl FairPermits {
    /// Creates the permits.
    #[must_use]
    pub fn new(limits: PermitLimits) -> Self {
        Self(Arc::new(Shared {
            limits: PermitLimits {
                total: limits.total.max(1),
                per_owner: limits.per_owner.max(1),
            },
            queue: Mutex::default(),
            waited: AtomicU64::new(0),
        }))
    }

    /// Waits for a permit for `owner`; `None` stands for work that belongs to no owner.
    ///
    /// A caller that stops waiting (drops the future) leaves nothing behind.
    pub async fn acquire_permit(&self, owner: Option<&Owner>) -> Permit {
        let holder = owner.cloned();
        let mut has_waited = false;
        loop {
            let Some(granted) = self.0.take_or_queue(&holder) else {
                return Permit::new(&self.0, holder);
            };
            if !has_waited {
                self.0.waited.fetch_add(1, Ordering::Relaxed);
                has_waited = true;
            }
            // The sender stays in the queue until it sends.
            if let Ok(permit) = granted.await {
                return permit;
            }
        }
    }

    /// Returns how many acquisitions had to wait so far.
    #[must_use]
    pub fn times_waited(&self) -> u64 {
        self.0.waited.load(Ordering::Relaxed)
    }

    /// Returns how many permits are held now.
    #[must_use]
    pub fn held_permits(&self) -> usize {
        self.0.lock_queue().held
    }
}

impl Shared {
    fn lock_queue(&self) -> MutexGuard<'_, PermitQueue> {
        // No foreign code runs under this lock, so a poisoned queue is still consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit (`None`), or returns where one will arrive.
    fn take_or_queue(&self, holder: &Holder) -> Option<oneshot::Receiver<Permit>> {
        let mut queue = self.lock_queue();
        let is_free = queue.held < self.limits.total;
        let of_holder = queue.holders.entry(holder.clone()).or_default();
        if is_free && of_holder.held < self.limits.per_owner {
            of_holder.held += 1;
            queue.held += 1;
            return None;
        }
        // Those who left are dropped here, so the queue of an owner whose callers keep giving up
        // stays short.
        while of_holder
            .waiting
            .front()
            .is_some_and(oneshot::Sender::is_closed)
        {
            of_holder.waiting.pop_front();
        }
        let (sender, receiver) = oneshot::channel();
        of_holder.waiting.push_back(sender);
        if !std::mem::replace(&mut of_holder.has_turn, true) {
            queue.turns.push_back(holder.clone());
        }
        Some(receiver)
    }

    /// Gives a permit back and passes on what is free now.
    fn release_permit(self: &Arc<Self>, holder: &Holder) {
        let mut queue = self.lock_queue();
        queue.give_back(holder);
        while let Some((next, sender)) = queue.next_waiting(self.limits) {
            let mut permit = Permit::new(self, next.clone());
            // Nobody else runs while this is sent, and a permit that comes back because its caller
            // has left must not lock the queue again when it is dropped.
            if let Err(unclaimed) = sender.send(permit) {
                permit = unclaimed;
                permit.holder = None;
                queue.give_back(&next);
            }
        }
    }
}

impl PermitQueue {
    fn give_back(&mut self, holder: &Holder) {
        self.held = self.held.saturating_sub(1);
        if let Some(of_holder) = self.holders.get_mut(holder) {
            of_holder.held = of_holder.held.saturating_sub(1);
            if of_holder.held == 0 && !of_holder.has_turn {
                self.holders.remove(holder);
            }
        }
    }

    /// Counts a permit for the next caller in turn, and returns it.
    fn next_waiting(&mut self, limits: PermitLimits) -> Option<(Holder, oneshot::Sender<Permit>)> {
        while self.held < limits.total {
            // Those before it in the queue hold as many as they may; there are only so many of them
            // as there are permits.
            let holders = &self.holders;
            let may_take = |holder: &Holder| {
                holders
                    .get(holder)
                    .is_none_or(|of_holder| of_holder.held < limits.per_owner)
            };
            let at = self.turns.iter().position(may_take)?;
            let holder = self.turns.remove(at)?;
            let Some(of_holder) = self.holders.get_mut(&holder) else {
                continue;
            };
            let next = std::iter::from_fn(|| of_holder.waiting.pop_front());
            let next = next.into_iter().find(|sender| !sender.is_closed());
            of_holder.has_turn = !of_holder.waiting.is_empty();
            if of_holder.has_turn {
                self.turns.push_back(holder.clone());
            }
            if let Some(sender) = next {
                of_holder.held += 1;
                self.held += 1;
                return Some((holder, sender));
            }
            if of_holder.held == 0 {
                self.holders.remove(&holder);
            }
        }
        None
    }
}

impl Permit {
    fn new(shared: &Arc<Shared>, holder: Holder) -> Self {
        Self {
            shared: Arc::clone(shared),
            holder: Some(holder),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            self.shared.release_permit(&holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Permit>>>;

    struct Bench {
        permits: FairPermits,
        owners: Vec<Owner>,
    }

    impl Bench {
        fn new(total: usize, per_owner: usize) -> Self {
            let owners = ["a", "b", "c"].map(|name| Owner::new(name).unwrap());
            Self {
                permits: FairPermits::new(PermitLimits { total, per_owner }),
                owners: owners.into(),
            }
        }

        fn acquire(&self, owner: usize) -> Waiting {
            let (permits, owner) = (self.permits.clone(), self.owners[owner].clone());
            let mut waiting: Waiting =
                Box::pin(async move { permits.acquire_permit(Some(&owner)).await });
            // The first poll puts it into the queue.
            assert!(granted(&mut waiting).is_none());
            waiting
        }

        fn take(&self, owner: usize) -> Permit {
            let mut taken = Box::pin(self.permits.acquire_permit(Some(&self.owners[owner])));
            match taken.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(permit) => permit,
                Poll::Pending => panic!("no permit for owner {owner}"),
            }
        }
    }

    fn granted(waiting: &mut Waiting) -> Option<Permit> {
        match waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    /// One owner takes no more than its share, and the rest stays free for others.
    #[test]
    fn an_owner_is_held_to_its_share() {
        let bench = Bench::new(4, 2);
        let held = [bench.take(0), bench.take(0)];
        let mut third = bench.acquire(0);
        let others = [bench.take(1), bench.take(1)];
        let mut last = bench.acquire(2);
        assert_eq!(bench.permits.held_permits(), 4);
        drop(others);
        assert!(granted(&mut third).is_none(), "its owner holds two");
        let last = granted(&mut last).unwrap();
        drop(held);
        let third = granted(&mut third).unwrap();
        assert_eq!(bench.permits.times_waited(), 2);
        drop((third, last));
        assert_eq!(bench.permits.held_permits(), 0);
        assert!(bench.permits.0.lock_queue().holders.is_empty());
    }

    /// However many reads an owner has queued, another waits for one of them at most.
    #[test]
    fn owners_are_served_in_turn() {
        let bench = Bench::new(1, 1);
        let mut held = Some(bench.take(0));
        let mut waiting: Vec<(usize, Waiting)> = Vec::new();
        for owner in [0, 0, 0, 1, 1, 2] {
            waiting.push((owner, bench.acquire(owner)));
        }
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(held.take());
            let (at, permit) = waiting
                .iter_mut()
                .enumerate()
                .find_map(|(at, (_, one))| Some((at, granted(one)?)))
                .unwrap();
            order.push(waiting.remove(at).0);
            held = Some(permit);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 0]);
    }

    /// Whoever leaves the queue is passed over, before or after a permit was sent to it.
    #[test]
    fn who_leaves_is_passed_over() {
        let bench = Bench::new(1, 1);
        let held = bench.take(0);
        let mut waiting: Vec<Waiting> = (0..6).map(|n| bench.acquire(n % 3)).collect();
        let mut last = waiting.pop().unwrap();
        let sent = waiting.remove(0);
        drop(waiting);
        drop(held);
        assert!(
            granted(&mut last).is_none(),
            "the first one's permit is unclaimed"
        );
        drop(sent);
        drop(granted(&mut last).unwrap());
        assert_eq!(bench.permits.held_permits(), 0);
        drop(bench.take(1));
    }
}
