//! Who writes one thing at a time, in this process: others wait for their turn instead of trying again and again.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use tokio::sync::{Mutex, MutexGuard};

/// So many may write at once; what is not the same may share a turn all the same.
const LOCK_COUNT: usize = 64;

/// The turns of all.
#[derive(Debug)]
pub(crate) struct KeyedLocks([Mutex<()>; LOCK_COUNT]);

impl Default for KeyedLocks {
    fn default() -> Self {
        Self([const { Mutex::const_new(()) }; LOCK_COUNT])
    }
}

impl KeyedLocks {
    /// Waits for the turn of a thing. It ends when it is dropped; whoever has one does not ask for another.
    pub(crate) async fn lock_key(&self, thing: &impl Hash) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        thing.hash(&mut hasher);
        let at = hasher.finish() % LOCK_COUNT as u64;
        match self.0.get(usize::try_from(at).ok()?) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }
}
