//! Locks by key: writers of one entry in this process queue up instead of retrying against one another.
//!
//! The store detects conflicting writes by version. That is enough between processes, but many tasks that add to one sum
//! would retry most of the time; a lock per key makes each write succeed at once.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Keys are hashed onto them, so unrelated keys may share one: that costs waiting, never correctness.
const LOCK_COUNT: usize = 64;

/// A fixed set of locks that keys are hashed onto.
#[derive(Debug)]
pub(crate) struct KeyedLocks([Mutex<()>; LOCK_COUNT]);

impl Default for KeyedLocks {
    fn default() -> Self {
        Self([const { Mutex::const_new(()) }; LOCK_COUNT])
    }
}

impl KeyedLocks {
    /// Locks a key until the guard is dropped. A holder must not lock another key: both may share one lock.
    pub(crate) async fn lock_key(&self, key: &impl Hash) -> Option<MutexGuard<'_, ()>> {
        // Always seeded alike, unlike `RandomState`: a key must find the same lock each time.
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let index = hasher.finish() % LOCK_COUNT as u64;
        match self.0.get(usize::try_from(index).ok()?) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }
}
